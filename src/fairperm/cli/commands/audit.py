"""``fairperm audit``: test many metrics and groups of a file, with a verdict for each gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import format_name, state_pvalue
from fairperm.cli.command import command
from fairperm.cli.options import as_arguments
from fairperm.cli.presenting import check_presentation, read_presentation
from fairperm.cli.running import Run, print_failed
from fairperm.cli.terminal import (
    print_audit,
    print_error,
    print_report,
    print_seed,
    print_text,
    warn_of_similar_names,
    wrap,
    write_message,
)
from fairperm.cli.values import list_columns, parse_numbers, split_columns
from fairperm.errors import FairpermError, InputError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import click

    from fairperm.auditing.gates import Gate
    from fairperm.auditing.result import Audit
    from fairperm.cli.files.loading import LoadedData
    from fairperm.hypothesis_tests.results.audits import AuditRow
    from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult

_MAX_THRESHOLDS = 101
_RESAMPLES = 999


AUDITS = (
    "pos_label control stratum_weights cluster split_clusters weight count missing compare "
    "reference intersections ratio min_group_size group_size_by adjust family alpha "
    "confidence_level alternative scheme variance resamples bootstraps seed jobs READING short "
    "title author note positive_means negative_means rename json csv xlsx raw_names markdown "
    "junit show_small quiet config debug"
)


@command(
    "audit",
    "files label prediction score group metric margin report",
    "class_score threshold group_probability proxy proxy_assumption matched names score_bins "
    f"distance ranking query k {AUDITS} fail_on",
    example="fairperm audit predictions.csv --label repaid --prediction approved \\\n"
    "    --group sex --group race --metric fpr --report audit.html",
)
def audit(ctx: click.Context) -> int:
    """Test every gap between groups, adjust for multiple comparisons, and give each a verdict."""
    return run_audit(ctx)


def run_audit(ctx: click.Context) -> int:
    """Run an audit of one model or of two with the options of a command, and return its code."""
    import fairperm
    from fairperm.auditing.gates import Gate, read_words
    from fairperm.auditing.markdown import as_markdown
    from fairperm.data.arguments import CLASS_SCORE_METRICS, DEFAULT_METRICS

    run = Run(ctx)
    given, is_of_one = run.given, run.command == "audit"
    check_presentation(ctx)
    for word in given["fail_on"]:
        if not given["ratio"] and word in {"ratio", "ratio-estimate"}:
            raise InputError(f"--fail-on {word} needs --ratio, such as --ratio 0.8.")
    names = list(given["metric"] or ())
    if not names and not given.get("distance") and not given.get("ranking"):
        # what the function may choose to read
        names += CLASS_SCORE_METRICS if given.get("class_score") else DEFAULT_METRICS
        names = names if given["label"] is not None else names[:1]
    parse_numbers("--margin", given["margin"])  # before the data are read
    is_swept = is_of_one and given["report"] is not None and given["score"] is not None
    loaded = run.read(names, rows=is_swept)  # a sweep needs every score
    columns = dict.fromkeys(name for one in given["group"] for name in list_columns(one))
    values = (
        (name, value)
        for name in columns
        if given["rename"]
        for (value,) in loaded.distinct_rows([name])
    )
    presentation = read_presentation(given, values)  # its errors come before the work
    found: Audit = run.call(fairperm.audit, metrics=given["metric"] or None)
    warn_of_similar_names(found.groups, quiet=given["quiet"])
    used = list(given["metric"] or found.settings["metrics"])
    settings = run.settings(metric=used, seed=found.seed)
    gate = Gate(read_words(given["fail_on"]), of_changes=not is_of_one)
    failed = gate.find_failed(found)
    # write the files first: the reader of the table may close the pipe
    if given["report"] is not None:
        from fairperm.auditing.result import list_defaults
        from fairperm.report.page import as_html

        sweeps = _sweep(found, run) if is_swept and not presentation.short else Sweeps()
        as_html(
            found,
            given["report"],
            presentation=presentation,
            sweep=sweeps.found,
            not_swept=sweeps.reasons,
            provenance=run.describe(settings),
            defaults=list_defaults(found.settings),
        )
    notes = map(write_message, found.notes)
    run.write(
        found.to_dict,
        settings,
        lambda: [row.cells() for row in found.rows],
        (
            given["markdown"],
            lambda: as_markdown(found, notes, changes=not is_of_one, failed=failed),
        ),
        (given["junit"], lambda: _as_junit(found, failed, gate)),
    )
    if not run.is_silent:
        print_audit(found, changes=not is_of_one, shows_small=given["show_small"])
        for note in run.unseen(found.notes):
            print_text(wrap(f"Note: {note}"))
        print_seed(found.seed)
        print_report(given["report"])
    if given["fail_on"]:
        if not failed:
            gate.check(found)
        for note in gate.note_not_judged(found):
            print_error(f"fairperm: {write_message(note)}")
    name = "adjusted p" if found.adjust else "p"
    lines = [_describe_failed(row, name) for row in failed]
    return print_failed(lines, len(found.rows), "comparisons", given["fail_on"])


def _as_junit(audit: Audit, failed: Sequence[AuditRow], gate: Gate) -> str:
    """Return the comparisons as tests."""
    from fairperm.cli.junit import Case, as_junit

    cases = []
    for row in audit.rows:
        told = row if row.change is None else row.change
        name = f"{format_name(row.metric)}: {row.gap_name}"
        cases.append(Case(row.attribute, name, told.verdict, told.reason, row in failed))
    command = "compare" if gate.of_changes else "audit"
    return as_junit(command, cases, lambda: gate.check(audit))


def _describe_failed(row: AuditRow, name: str) -> str:
    """Return why a comparison fails; ``name`` is that of its p-values."""
    parts = [format_name(row.attribute), format_name(row.metric), row.gap_name]
    if row.change is not None:
        parts.append(f"gap {' → '.join(row.change.gap_texts)}")
        if row.change.adjusted_pvalue is not None:
            parts.append(state_pvalue(row.change.adjusted_pvalue, name))
        return f"{row.change.verdict}: {', '.join(parts)}"
    if row.difference is not None:
        parts.append(f"gap {row.gap_text}")
    if row.adjusted_pvalue is not None:
        parts.append(state_pvalue(row.adjusted_pvalue, name))
    if row.adjusted_exceedance_pvalue is not None:
        beyond = state_pvalue(row.adjusted_exceedance_pvalue, name)
        parts.append(f"beyond the margin of {row.margin:g} {beyond}")
    if row.ratio_bound is not None:
        parts.append(f"ratio {row.ratio_text}")
    return f"{row.verdict}: {', '.join(parts)}"


def _sweep(audit: Audit, run: Run) -> Sweeps:
    """Return the threshold sweeps for the report, if there are scores."""
    given, loaded = run.given, run.loaded
    score = loaded.column_if_read(given["score"])
    if score is None or not audit.settings["metrics"]:
        return Sweeps()
    reason = "" if given["label"] else "sweeps need --label."
    for option in ("cluster", "matched", "names", "weight", "group_probability"):
        if given[option]:
            reason = reason or f"sweeps do not support --{option.replace('_', '-')}."
    if reason:
        return Sweeps([], dict.fromkeys(audit.settings["attributes"], reason))
    options = as_arguments(run.options, given, loaded)
    shared = ("pos_label", "missing", "control_features", "stratum_weights", "count")
    return make_sweeps(
        audit,
        loaded.data,
        label=given["label"],
        score=score,
        attributes=[split_columns(one) for one in given["group"]],
        thresholds=_choose_thresholds(loaded, score),
        progress=False,
        **{name: options[name] for name in shared},
    )


def _choose_thresholds(loaded: LoadedData, score: str) -> object:
    """Return every score as a threshold if they are few: between them nothing changes."""
    from fairperm.data.lazy.backends import is_lazy

    if is_lazy(loaded.data):
        return _MAX_THRESHOLDS
    n_scores = len(loaded.distinct_rows([score]))
    return "scores" if n_scores <= _MAX_THRESHOLDS else _MAX_THRESHOLDS


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
