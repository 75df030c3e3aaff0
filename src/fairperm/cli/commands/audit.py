"""``fairperm audit``: test many metrics and groups of a file, with a verdict for each gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from fairperm._utils.formatting import format_name, state_pvalue
from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.presenting import check_presentation, describe_run, read_presentation
from fairperm.cli.terminal import (
    print_audit,
    print_error,
    print_report,
    print_seed,
    print_text,
    select_unseen,
    show_warnings,
    warn_of_similar_names,
    wrap,
    write_message,
)
from fairperm.errors import FairpermError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from fairperm.auditing.gates import Gate
    from fairperm.auditing.result import Audit
    from fairperm.cli.files.loading import LoadedData
    from fairperm.hypothesis_tests.results.audits import AuditRow
    from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult
    from fairperm.report.presentation import Presentation

_MAX_FAILED = 20
_MAX_THRESHOLDS = 101
_RESAMPLES = 999


def audit(
    ctx: typer.Context,
    files: arg.Files = None,
    label: arg.Label = None,
    prediction: arg.Prediction = None,
    score: arg.Score = None,
    class_score: arg.ClassScore = None,
    threshold: arg.Threshold = None,
    group: arg.Group = None,
    pos_label: arg.PosLabel = None,
    control: arg.Control = None,
    stratum_weights: arg.StratumWeights = None,
    cluster: arg.Cluster = None,
    split_clusters: arg.SplitClusters = False,
    matched: arg.Matched = None,
    weight: arg.Weight = None,
    missing: arg.Missing = "error",
    score_bins: arg.ScoreBins = None,
    metric: arg.Metrics = None,
    distance: arg.Distances = None,
    ranking: arg.Rankings = None,
    query: arg.Query = None,
    k: arg.TopK = 10,
    compare: arg.Compare = None,
    reference: arg.Reference = None,
    intersections: arg.Intersections = False,
    margin: arg.Margin = None,
    ratio: arg.Ratio = None,
    adjust: arg.Adjust = "holm",
    family: arg.Family = "audit",
    alpha: arg.Alpha = 0.05,
    min_group_size: arg.MinGroupSize = 50,
    group_size_by: arg.GroupSizeBy = "metric",
    scheme: arg.Scheme = "auto",
    variance: arg.Variance = "auto",
    alternative: arg.Alternative = "two-sided",
    resamples: arg.Resamples = "auto",
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
    skip: arg.Skip = 0,
    na: arg.Na = None,
    report: arg.Report = None,
    title: arg.Title = None,
    author: arg.Author = None,
    note: arg.ReportNote = None,
    positive_means: arg.PositiveMeans = None,
    rename: arg.Rename = None,
    short: arg.Short = False,
    json: arg.Json = None,
    csv: arg.Csv = None,
    raw_names: arg.RawNames = False,
    markdown: arg.Markdown = None,
    fail_on: arg.Fail = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test every gap between groups, adjust for multiple comparisons, and give each a verdict."""
    return run_audit(ctx, "audit")


def run_audit(ctx: typer.Context, command: str) -> int:
    """Run an audit of one model or of two with the options of a command, and return its code."""
    import fairperm
    from fairperm.auditing.questions import choose_default_metrics
    from fairperm.cli.files.loading import read_columns

    given = ctx.params
    paths = {name: given[name] for name in ("report", "json", "csv", "markdown")}
    printed = outputs.check_outputs({f"--{name}": path for name, path in paths.items()})
    check_presentation(ctx)
    fail_on = [one.value for one in given["fail_on"] or []]
    for word in fail_on:
        if not given["ratio"] and word in {"ratio", "ratio-estimate"}:
            raise InputError(f"--fail-on {word} needs --ratio, such as --ratio 0.8.")
    distances, rankings = given.get("distance"), given.get("ranking")
    default: tuple[str, ...] = ()
    if not distances and not rankings:
        default = choose_default_metrics(has_labels=given["label"] is not None)
    names = list(given["metric"] or default)
    margins = arg.parse_numbers("--margin", given["margin"])
    is_swept = command == "audit" and given["report"] is not None and given["score"] is not None
    loaded = ctx.with_resource(
        read_columns(
            given,
            names,
            with_hashes=given["json"] is not None or given["report"] is not None,
            rows=is_swept,  # a sweep needs every score
        )
    )
    groups = [arg.split_columns(one) for one in given["group"]]
    columns = dict.fromkeys(name for one in given["group"] for name in one.split(","))
    values = (
        (name, value)
        for name in columns
        if given["rename"]
        for (value,) in loaded.distinct_rows([name])
    )
    presentation = read_presentation(given, values)  # its errors come before the work
    audit_of: Callable[..., Audit] = fairperm.audit  # it checks every word
    quiet, of_classes = given["quiet"], given.get("class_score")
    own: dict[str, Any]
    if command == "audit":
        own = {name: given[name] for name in ("matched", "score_bins", "query", "k")}
        own |= {"distances": distances or None, "rankings": rankings or None}
    else:
        own = {
            "y_pred_new": given["prediction_new"],
            "y_score_new": loaded.column_if_read(given["score_new"]),
            "threshold_new": given["threshold_new"],
        }
    with show_warnings(quiet) as seen, loaded.clear_errors(), arg.name_scores(of_classes):
        found = audit_of(
            given["label"],
            given["prediction"],
            y_score=loaded.find_scores(given["label"], given["score"], of_classes),
            **own,
            threshold=given["threshold"],
            sensitive_features=groups[0] if groups == [*columns][:1] else groups,
            metrics=names or None,
            data=loaded.data,
            compare=given["compare"] or ("reference" if given["reference"] else "pairs"),
            reference=_find_references(loaded, groups, given["reference"] or []),
            intersections=given["intersections"],
            adjust=arg.parse_word(given["adjust"]),
            family=given["family"],
            alpha=given["alpha"],
            margin=margins,
            ratio=arg.parse_numbers("--ratio", given["ratio"]),
            min_group_size=given["min_group_size"],
            group_size_by=given["group_size_by"],
            pos_label=loaded.find_value(given["label"] or given["prediction"], given["pos_label"]),
            control_features=given["control"] or None,
            stratum_weights=loaded.find_stratum_weights(given["control"], given["stratum_weights"]),
            cluster=given["cluster"],
            split_clusters=given["split_clusters"],
            sample_weight=given["weight"],
            missing=given["missing"],
            scheme=given["scheme"],
            variance=arg.parse_word(given["variance"]),
            alternative=given["alternative"],
            n_resamples=given["resamples"],
            n_bootstrap=given["bootstraps"],
            confidence_level=given["confidence_level"],
            rng=given["seed"],
            n_jobs=given["jobs"],
            progress=False if quiet else None,
        )
    warn_of_similar_names(found.groups, quiet=quiet)
    options = {**arg.collect_settings(given), "metric": names, "seed": found.seed}
    outcome = Outcome(found, loaded, command, options, fail_on)
    # write the files first: the reader of the table may close the pipe
    outcome.write(presentation=presentation, raw_names=given["raw_names"], **paths)
    if not quiet and not printed:
        print_audit(found, changes=command == "compare")
        for note in select_unseen(found.notes, seen):
            print_text(wrap(f"Note: {note}"))
        print_seed(found.seed)
        print_report(paths["report"])
    return outcome.report_failures()


def _find_references(
    loaded: LoadedData, groups: Sequence[str | tuple[str, ...]], given: Sequence[str]
) -> Any:
    """Return the reference group, or the reference groups by attribute; combinations have none."""
    if not given:
        return None
    singles = [one for one in groups if isinstance(one, str)]
    if len(groups) == len(singles) == len(given) == 1:
        return loaded.find_value(singles[0], given[0].removeprefix(f"{singles[0]}="))
    found: dict[str, object] = {}
    for text in given:
        name = next((one for one in singles if text.startswith(f"{one}=")), None)
        if name is not None:
            found[name] = loaded.find_value(name, text.removeprefix(f"{name}="))
            continue
        name, mark, _ = text.partition("=")
        if not mark:
            rule = "COLUMN=GROUP if there are several --group columns"
            raise InputError("--reference", rule, text)
        found[name] = text  # audit() raises: there is no such attribute
    return found


@dataclass(frozen=True, slots=True)
class Outcome:
    """An audit, the options that led to it, and the verdicts that make the command fail."""

    audit: Audit
    loaded: LoadedData
    command: str
    options: dict[str, Any]
    fail_on: list[str]

    def failed(self) -> list[AuditRow]:
        """Return the comparisons that make the command fail."""
        return self.gate.find_failed(self.audit)

    @property
    def gate(self) -> Gate:
        """What --fail-on asks."""
        from fairperm.auditing.gates import Gate, read_words

        return Gate(read_words(self.fail_on), of_changes=self.command == "compare")

    def write(
        self,
        *,
        report: Any,
        presentation: Presentation,
        json: str | None,
        csv: str | None,
        raw_names: bool,
        markdown: str | None,
    ) -> None:
        """Write the requested files."""
        if report is not None:
            from fairperm.report.page import as_html

            run = describe_run(self.command, self.options, self.loaded.files, self.loaded.n_rows)
            is_swept = self.command == "audit" and not presentation.short
            sweeps = self.make_sweeps() if is_swept else Sweeps()
            as_html(
                self.audit,
                report,
                presentation=presentation,
                sweep=sweeps.found,
                not_swept=sweeps.reasons,
                provenance=run,
            )

        def make_json() -> str:
            return outputs.as_json(
                self.command,
                self.audit.to_dict(),
                options=self.options,
                files=self.loaded.files,
                rows=self.loaded.n_rows,
            )

        rows = [row.cells() for row in self.audit.rows]
        is_audit = self.command == "audit"
        write_markdown = outputs.as_markdown if is_audit else outputs.changes_as_markdown
        outputs.write_outputs(
            (json, make_json),
            (csv, lambda: outputs.as_csv(rows, raw_names=raw_names)),
            (markdown, lambda: write_markdown(self.audit, self.failed())),
        )

    def make_sweeps(self) -> Sweeps:
        """Return the threshold sweeps for the report, if there are scores."""
        given = self.options
        score = self.loaded.column_if_read(given.get("score"))
        if score is None or not self.audit.settings["metrics"]:
            return Sweeps()
        if not given.get("label"):
            return Sweeps(
                [], dict.fromkeys(self.audit.settings["attributes"], "sweeps need --label.")
            )
        for option in ("cluster", "matched", "weight"):
            if given.get(option):
                reason = f"sweeps do not support --{option}."
                return Sweeps([], dict.fromkeys(self.audit.settings["attributes"], reason))
        return make_sweeps(
            self.audit,
            self.loaded.data,
            label=given["label"],
            score=score,
            attributes=[arg.split_columns(one) for one in given["group"]],
            pos_label=self.loaded.find_value(given["label"], given.get("pos_label")),
            thresholds=self._choose_thresholds(score),
            missing=given["missing"],
            control_features=given.get("control"),
            stratum_weights=self.loaded.find_stratum_weights(
                given.get("control"), given.get("stratum_weights")
            ),
            progress=False,
        )

    def _choose_thresholds(self, score: str) -> object:
        """Return every score as a threshold if they are few: between them nothing changes."""
        from fairperm.data.lazy.backends import is_lazy

        if is_lazy(self.loaded.data):
            return _MAX_THRESHOLDS
        n_scores = len(self.loaded.distinct_rows([score]))
        return "scores" if n_scores <= _MAX_THRESHOLDS else _MAX_THRESHOLDS

    def report_failures(self) -> int:
        """Print the comparisons that failed, and return the exit code.

        Raises InputError if none did, and one could not have.
        """
        if not self.fail_on:
            return 0
        failed = self.failed()
        if not failed:
            self.gate.check(self.audit)
        for note in self.gate.note_not_judged(self.audit):
            print_error(f"fairperm: {write_message(note)}")
        if not failed:
            return 0
        print_error(
            f"fairperm: failed: {len(failed)} of {len(self.audit.rows)} comparisons "
            f"(--fail-on {', '.join(self.fail_on)})"
        )
        for row in failed[:_MAX_FAILED]:
            parts = [format_name(row.attribute), format_name(row.metric), row.gap_name]
            if self.command == "compare" and row.change is not None:
                parts.append(f"gap {' → '.join(row.change.gap_texts)}")
                if row.change.adjusted_pvalue is not None:
                    parts.append(state_pvalue(row.change.adjusted_pvalue, "adjusted p"))
                print_error(f"  {row.change.verdict}: {', '.join(parts)}")
                continue
            if row.difference is not None:
                parts.append(f"gap {row.gap_text}")
            if row.adjusted_pvalue is not None:
                parts.append(state_pvalue(row.adjusted_pvalue, "adjusted p"))
            if row.adjusted_exceedance_pvalue is not None:
                beyond = state_pvalue(row.adjusted_exceedance_pvalue, "adjusted p")
                parts.append(f"beyond the margin of {row.margin:g} {beyond}")
            if row.ratio_bound is not None:
                parts.append(f"ratio {row.ratio_text}")
            print_error(f"  {row.verdict}: {', '.join(parts)}")
        if len(failed) > _MAX_FAILED:
            print_error(f"  and {len(failed) - _MAX_FAILED} more")
        return 1


@dataclass(frozen=True, slots=True)
class Sweeps:
    """The threshold sweeps for a report, and for each attribute without one the reason."""

    found: list[ThresholdSweepResult] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)


def make_sweeps(
    audit: Audit,
    data: Any,
    *,
    label: str,
    score: str,
    attributes: Sequence[str | tuple[str, ...]],
    **options: Any,
) -> Sweeps:
    """Sweep the thresholds for the two largest groups of each attribute.

    Metrics without a threshold are skipped. If a sweep fails, the report gives the reason: it is
    about the audit, not its sweeps.
    """
    import fairperm
    from fairperm.metrics.registry import get_metric

    names = [
        one.name
        for one in map(get_metric, audit.settings["metrics"])
        if one.uses_threshold and not one.is_joint
    ]
    made = Sweeps()
    for columns in attributes if names else ():
        attribute = columns if isinstance(columns, str) else " × ".join(columns)
        pair = _largest_pair(audit, attribute)
        if pair is None:
            made.reasons[attribute] = "fewer than two of its groups are large enough for a verdict."
            continue
        try:
            made.found.append(
                fairperm.threshold_sweep(
                    label,
                    score,
                    sensitive_features=columns if isinstance(columns, str) else [*columns],
                    metric=names,
                    data=data,
                    groups=pair,
                    alpha=audit.alpha,
                    n_resamples=_RESAMPLES,
                    rng=audit.seed,
                    **options,
                )
            )
        except FairpermError as error:
            made.reasons[attribute] = write_message(error)
    return made


def _largest_pair(audit: Audit, attribute: str) -> tuple[Hashable, Hashable] | None:
    """Return the two largest groups with verdicts, in the order of the audit."""
    groups = [one for one in audit.groups if one.attribute == attribute and not one.is_small]
    largest = sorted(groups, key=lambda one: -one.rows)[:2]
    if len(largest) < 2:
        return None
    first, second = (one.group for one in groups if one in largest)
    compared = {row.groups for row in audit.rows if row.attribute == attribute}
    return (second, first) if (second, first) in compared else (first, second)
