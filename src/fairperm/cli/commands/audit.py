"""``fairperm audit``: many metrics and groups of a file, with a verdict for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from fairperm.cli import common as running
from fairperm.cli import options as arg
from fairperm.cli.commands.report_sweeps import Sweeps, provenance, sweeps, write_report
from fairperm.cli.files.wanted_columns import reading, values_of, weights_of
from fairperm.cli.terminal import complain, fits, rendered, say, width, wrapped
from fairperm.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairperm.auditing.result import Audit
    from fairperm.cli.files.loading import Loaded
    from fairperm.hypothesis_tests.results.audits import AuditRow

_MOST_FAILED = 20
_MOST_THRESHOLDS = 101


def audit(
    ctx: typer.Context,
    files: arg.Files = None,
    label: arg.Label = None,
    prediction: arg.Prediction = None,
    score: arg.Score = None,
    threshold: arg.Threshold = None,
    group: arg.Group = None,
    pos_label: arg.PosLabel = None,
    control: arg.Control = None,
    stratum_weights: arg.StratumWeights = None,
    cluster: arg.Cluster = None,
    weight: arg.Weight = None,
    missing: arg.Missing = "error",
    score_bins: arg.ScoreBins = None,
    sample_rows: arg.SampleRows = None,
    metric: arg.Metrics = None,
    compare: arg.Compare = None,
    reference: arg.Reference = None,
    intersections: arg.Intersections = False,
    margin: arg.Margin = None,
    adjust: arg.Adjust = "holm",
    alpha: arg.Alpha = 0.05,
    min_group_size: arg.MinGroupSize = 50,
    scheme: arg.Scheme = "auto",
    variance: arg.Variance = "auto",
    alternative: arg.Alternative = "two-sided",
    resamples: arg.Resamples = 9999,
    bootstraps: arg.Bootstraps = 500,
    confidence_level: arg.ConfidenceLevel = 0.95,
    seed: arg.Seed = None,
    jobs: arg.Jobs = None,
    table: arg.Table = None,
    sql: arg.Sql = None,
    where: arg.Where = None,
    format_: arg.FormatOption = None,
    delimiter: arg.Delimiter = None,
    decimal: arg.Decimal = ".",
    encoding: arg.Encoding = None,
    na: arg.Na = None,
    report: arg.Report = None,
    json: arg.Json = None,
    csv: arg.Csv = None,
    markdown: arg.Markdown = None,
    fail_on: arg.Fail = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Compare groups in several metrics, and say of each gap what can be said."""
    import fairperm

    printed = running.check_outputs(
        {"--report": report, "--json": json, "--csv": csv, "--markdown": markdown}
    )
    names = list(metric or arg.DEFAULT_METRICS)
    margins = running.number_or_pairs("--margin", margin)
    loaded = ctx.with_resource(
        reading(
            ctx.params,
            names,
            with_hashes=json is not None or report is not None,
            rows=report is not None and score is not None,  # its sweep needs every score
        )
    )
    run_audit: Callable[..., Audit] = fairperm.audit  # which checks every word that it is given
    with running.noted(quiet) as said:
        found = run_audit(
            label,
            prediction,
            y_score=loaded.if_read(score),
            threshold=threshold,
            sensitive_features=group[0] if group and len(group) == 1 else group,
            metrics=names,
            data=loaded.data,
            compare=compare or ("reference" if reference else "pairs"),
            reference=_references(loaded, group or [], reference or []),
            intersections=intersections,
            adjust=running.word_or_none(adjust),
            alpha=alpha,
            margin=margins,
            min_group_size=min_group_size,
            pos_label=values_of(loaded, label, pos_label),
            control_features=control or None,
            stratum_weights=weights_of(loaded, control, stratum_weights),
            cluster=cluster,
            sample_weight=weight,
            missing=missing,
            score_bins=score_bins,
            sample_rows=sample_rows,
            scheme=scheme,
            variance=running.word_or_none(variance),
            alternative=alternative,
            n_resamples=resamples,
            n_bootstrap=bootstraps,
            confidence_level=confidence_level,
            rng=seed,
            n_jobs=jobs,
            progress=False if quiet else None,
        )
    running.note_look_alikes(found.groups, quiet=quiet)
    options = {**running.settings(ctx.params), "metric": names, "seed": found.seed}
    outcome = Outcome(found, loaded, options, [one.value for one in fail_on or []])
    # first the files: who reads the table may close the pipe
    outcome.write(report=report, json=json, csv=csv, markdown=markdown)
    if not quiet and not printed:
        outcome.show(running.unsaid(found.notes, said))
    return outcome.gate()


def _references(loaded: Loaded, groups: Sequence[str], given: Sequence[str]) -> Any:
    """Return the reference group, or those of several attributes by their names."""
    if not given:
        return None
    if len(groups) == 1 and len(given) == 1:
        text = given[0].removeprefix(f"{groups[0]}=")
        return loaded.value(groups[0], text)
    found: dict[str, object] = {}
    for text in given:
        name = next((one for one in groups if text.startswith(f"{one}=")), None)
        if name is None:
            name, mark, _ = text.partition("=")
            if not mark:
                raise InputError(
                    "--reference must be COLUMN=GROUP where there are several --group columns; "
                    f"got {shown(text)}."
                )
            found[name] = text  # audit() says that there is no such attribute
            continue
        found[name] = loaded.value(name, text.removeprefix(f"{name}="))
    return found


@dataclass(frozen=True, slots=True)
class Outcome:
    """An audit and what to do with it."""

    audit: Audit
    loaded: Loaded
    options: dict[str, Any]
    fail_on: list[str]

    def failed(self) -> list[AuditRow]:
        """Return the comparisons that make the command fail."""
        verdicts = {one.replace("-", " ") for one in self.fail_on}
        return [row for row in self.audit.rows if row.verdict in verdicts]

    def show(self, notes: Sequence[str]) -> None:
        """Print the table, and notes that were not said yet."""
        from fairperm.auditing.text import as_table, footing, heading
        from fairperm.cli.documents import in_lines

        table = as_table(self.audit, width())
        say(wrapped(heading(self.audit)))
        say(rendered(table) if fits(table) else in_lines(self.audit, width()))
        say(wrapped(footing(self.audit)))
        for note in notes:
            say(wrapped(f"Note: {note}"))
        running.tell_seed(self.audit.seed)

    def write(
        self, *, report: Any, json: str | None, csv: str | None, markdown: str | None
    ) -> None:
        """Write the files that were asked for."""
        from fairperm.cli import documents

        if report is not None:
            write_report(self.audit, report, provenance=self.provenance(), sweeps=self.sweeps())
        if json is not None:
            text = documents.as_json(
                "audit",
                self.audit.to_dict(),
                command="audit",
                options=self.options,
                files=self.loaded.files,
                rows=self.loaded.n_rows,
            )
            running.write(json, text)
        if csv is not None:
            running.write(csv, documents.as_csv([row.cells() for row in self.audit.rows]))
        if markdown is not None:
            running.write(markdown, documents.as_markdown(self.audit, self.failed()))

    def provenance(self) -> dict[str, object]:
        """Return what it takes to run the audit again, for its report."""
        return provenance("audit", self.options, self.loaded.files, self.loaded.n_rows)

    def sweeps(self) -> Sweeps:
        """Return the sweeps for the report, where there are scores to make them of."""
        given = self.options
        score = self.loaded.if_read(given.get("score"))
        if score is None:
            return Sweeps()
        for option in ("cluster", "weight"):
            if given.get(option):
                return Sweeps([], dict.fromkeys(given["group"], f"sweeps know no --{option}."))
        pos_label = values_of(self.loaded, given["label"], given.get("pos_label"))
        return sweeps(
            self.audit,
            self.loaded.data,
            label=given["label"],
            score=score,
            attributes=given["group"],
            pos_label=pos_label,
            thresholds=self._thresholds(score),
            missing=given["missing"],
            control_features=given.get("control"),
            stratum_weights=weights_of(
                self.loaded, given.get("control"), given.get("stratum_weights")
            ),
            progress=False,
        )

    def _thresholds(self, score: str) -> object:
        """Return every score as a threshold where they are few: between them nothing changes."""
        known = self.loaded.table
        few = score in known.column_names and len(known[score].unique()) <= _MOST_THRESHOLDS
        return "scores" if few else _MOST_THRESHOLDS

    def gate(self) -> int:
        """Say which comparisons failed; return the exit code."""
        from fairperm._utils.formatting import format_name

        failed = self.failed()
        if not failed:
            return 0
        complain(
            f"fairperm: failed: {len(failed)} of {len(self.audit.rows)} comparisons "
            f"(--fail-on {', '.join(self.fail_on)})"
        )
        for row in failed[:_MOST_FAILED]:
            groups = " - ".join(format_name(one) for one in row.groups)
            gap = "" if row.difference is None else f", gap {row.difference:+z.4f}"
            p = "" if row.adjusted_pvalue is None else f", adjusted p {row.adjusted_pvalue:.4g}"
            of = f"{format_name(row.attribute)}, {format_name(row.metric)}, {groups}"
            complain(f"  {row.verdict}: {of}{gap}{p}")
        if len(failed) > _MOST_FAILED:
            complain(f"  and {len(failed) - _MOST_FAILED} more")
        return 1
