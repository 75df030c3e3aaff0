"""``fairperm periods``: test which gaps and groups changed from one period to another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairperm.cli.command import command
from fairperm.cli.running import Run, print_failed
from fairperm.cli.terminal import print_error, write_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fairperm import PeriodAudit


@command(
    "periods",
    "files label prediction score threshold group@one period metric@periods fail_on@periods report",
    "periods against reference@monitor alpha min_group_size@periods pos_label control "
    "stratum_weights cluster split_clusters weight count missing score_bins resamples seed jobs "
    "READING json csv raw_names junit quiet config debug",
    example="fairperm periods predictions.csv --label repaid --prediction approved \\\n"
    "    --group sex --period quarter --metric fpr --fail-on worse",
)
def periods(ctx: click.Context) -> int:
    """Test which gaps, and which groups' values, changed between periods, sites or versions.

    Periods are fixed beforehand and looked at once. To look whenever rows arrive, use `fairperm
    monitor`.
    """
    import fairperm
    from fairperm.auditing.gates import read_words

    run = Run(ctx)
    run.need(period=": the column of periods")
    run.read(run.given["metric"] or [])
    found: PeriodAudit = run.call(fairperm.audit_periods)
    words = read_words(run.given["fail_on"])
    settings = run.settings(seed=found.seed)
    run.report(found, settings)
    run.write(
        found.to_dict,
        settings,
        lambda: found.to_frame("pyarrow").to_pylist(),
        (run.given["junit"], lambda: _as_junit(found, words)),
    )
    are_exact = all(row.result is None or row.result.exact for row in found)
    unseen = replace(found, notes=run.unseen(found.notes))
    run.say(repr(unseen), None if are_exact else found.seed)
    return _report_failures(found, words)


def _as_junit(found: PeriodAudit, words: Sequence[str]) -> str:
    """Return the changes as tests."""
    from fairperm.cli.junit import Case, as_junit

    failed = found.select_failed(words)
    cases = [Case(row.metric, row.name, row.verdict, row.reason, row in failed) for row in found]
    return as_junit("periods", cases, lambda: found.find_failed(words))


def _report_failures(found: PeriodAudit, words: Sequence[str]) -> int:
    """Print the changes that failed, and return the exit code.

    Raises InputError if none did, and one could not have.
    """
    failed = found.find_failed(words)
    for note in found.note_not_judged(words):
        print_error(f"fairperm: {write_message(note)}")
    lines = [write_message(f"{row.verdict}: {row.name}") for row in failed]
    return print_failed(lines, len(found), "changes", words)
