"""Gates: which comparisons fail, and a refusal where that cannot be evaluated.

A gate never passes because a question had no answer. Comparisons with a group below the minimum
size are left out, as the audit leaves them out; but not all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairperm._utils.formatting import format_count, format_name
from fairperm.auditing.verdicts import (
    MAX_DRAWS_OF_AUDITS,
    count_resamples,
    count_tails,
    largest_factor,
)
from fairperm.errors import InputError, Note, argument
from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.inference.null import share_of_a_labelling

RATIO_WORDS = ("ratio", "ratio estimate")
_NOT_JUDGED = "a group is too small, or the metric has no value in it"
_SETTLED = ("equivalent", "closed", "narrowed", "unchanged within margin")


@dataclass(frozen=True, slots=True)
class Gate:
    """Verdicts that fail: of gaps, or of changes of gaps.

    Words are verdicts, or "ratio": a ratio that is shown to break its bound; or "ratio estimate":
    one that breaks it in the sample, whatever chance may do.
    """

    words: tuple[str, ...]
    of_changes: bool = False

    def find_failed(self, audit: AuditData) -> list[AuditRow]:
        """Return the comparisons that fail. Raises InputError if a ratio has no bound."""
        for word in self.words:
            if word in RATIO_WORDS and all(row.ratio_bound is None for row in audit.rows):
                raise InputError(f"{_name(word)} needs {argument('ratio')}, such as 0.8.")
        return [row for row in audit.rows if any(self._fails(row, word) for word in self.words)]

    def check(self, audit: AuditData) -> None:
        """Raise InputError if a comparison that does not fail could not have failed."""
        for word in self.words:
            asks_all = word not in RATIO_WORDS
            rows = [row for row in audit.rows if asks_all or row.ratio_bound is not None]
            judged = [row for row in rows if self._verdict(row) != "too small"]
            if not rows:
                raise InputError(f"{_name(word)} cannot be evaluated: there is no comparison.")
            if word == "too small":
                continue
            if not judged:
                raise InputError(
                    f"{_name(word)} cannot be evaluated: in every comparison {_NOT_JUDGED}. "
                    f"{_name('too small')} fails there."
                )
            for row in judged:
                if not self._fails(row, word) and (reason := self._find_obstacle(row, word, audit)):
                    where = f"{format_name(row.attribute)}, {format_name(row.metric)}"
                    raise InputError(
                        f"{_name(word)} cannot be evaluated for {where}, {row.gap_name}: {reason}"
                    )

    def note_not_judged(self, audit: AuditData) -> tuple[Note, ...]:
        """Return a note on comparisons that are left out because they were not judged."""
        n = sum(self._verdict(row) == "too small" for row in audit.rows)
        if n == 0 or "too small" in self.words:
            return ()
        have = "has" if n == 1 else "have"
        return (
            Note(
                f"{n:,} of {format_count(len(audit.rows), 'comparison')} {have} no verdict: "
                f"{_NOT_JUDGED}. {_name('too small')} fails there."
            ),
        )

    def _verdict(self, row: AuditRow) -> str:
        if not self.of_changes:
            return row.verdict
        if row.change is None:
            raise ValueError("a row of two models has a change")
        return row.change.verdict

    def _fails(self, row: AuditRow, word: str) -> bool:
        if word == "ratio":
            return row.ratio_verdict == "not met"
        if word == "ratio estimate":
            return row.ratio_estimate_verdict == "not met"
        found = self._verdict(row)  # the size of a gap that changed is not decided
        return found == word or (word == "inconclusive" and found == "changed")

    def _find_obstacle(self, row: AuditRow, word: str, audit: AuditData) -> str:
        """Return why a judged comparison cannot fail, whatever its gap; "" if it can."""
        if word in RATIO_WORDS and row.ratio_verdict is None:
            return f"values of {row.values_text} have no ratio."
        if word == "ratio estimate" or (word == "ratio" and row.ratio_verdict == "met"):
            return ""
        if word == "inconclusive" or (word != "ratio" and self._verdict(row) in _SETTLED):
            return ""
        if word == "disparity" and row.margin is not None and row.exceedance_pvalue is None:
            why = "several gaps at once have" if row.part is not None else "its gap has"
            return f"{why} no test at a margin. Leave out its {argument('margin')}."
        if word == "widened" and row.change is not None and row.change.size_pvalue is None:
            return "several gaps at once have no one size. Compare them one by one."
        return self._find_unreachable_level(row, word, audit)

    def _find_unreachable_level(self, row: AuditRow, word: str, audit: AuditData) -> str:
        """Return why no p-value can be at most the level; "" if one can."""
        drawn, alternative = audit.settings["n_resamples"], audit.settings["alternative"]
        if drawn == 0 or row.result is None:
            return ""
        n_hypotheses = audit.families.get(row.attribute, audit.n_hypotheses)
        if word == "ratio":  # a metric and its complement have two
            n_hypotheses = sum(one.ratio_verdict is not None for one in audit.rows)
        factor = largest_factor(n_hypotheses, audit.adjust)
        if word != "widened" and row.result.exact:
            if factor * smallest_pvalue(row.result) <= audit.alpha:
                return ""
            return f"so few {row.units} or clusters have no p-value that reaches the level."
        tails = count_tails(row, alternative)
        if word == "widened":  # the sum of two gaps is rarely enumerated
            tails = 1 if alternative == "symmetric" and row.margin is None else 2
        return explain_few_draws(drawn, tails * factor, audit.alpha)


def explain_few_draws(drawn: int | str, factor: float, alpha: float) -> str:
    """Return why no p-value of so many draws, times a factor, is at most the level; "" if one is.

    ``drawn`` may be "auto".
    """
    n = count_resamples(factor, alpha)
    if n <= (MAX_DRAWS_OF_AUDITS if drawn == "auto" else int(drawn)):
        return ""
    enough = argument("n_resamples", n)
    return f"so few resamples have no p-value that reaches the level. Use {enough} or more."


def smallest_pvalue(result: PermutationTestResult) -> float:
    """Return the smallest p-value that such a sample can have, or without its draws a bound."""
    if result.tested is not None:
        return result.tested.reference.most_extreme_pvalue(result.ordering)
    first, second = (result.counts[group] for group in result.groups)
    unit = next(one for one in ("sets", "clusters", "rows", "queries") if one in first)
    return share_of_a_labelling(first[unit], second[unit])


def _name(word: str) -> str:
    return argument("fail_on", word.replace(" ", "-"))


def read_words(given: Sequence[str]) -> tuple[str, ...]:
    """Return words as verdicts have them: "too small" for "too-small"."""
    return tuple(dict.fromkeys(one.replace("-", " ").replace("_", " ") for one in given))
