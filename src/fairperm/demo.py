"""What `make demo` shows: three gaps of the COMPAS risk score, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm.datasets import load_compas
from fairperm.metrics import get_metric
from fairperm.permutation import permutation_test

if TYPE_CHECKING:
    from fairperm.results import PermutationTestResult

_GROUPS = ("African-American", "Caucasian")
_QUESTIONS = {
    "false_positive_rate": "Of those not arrested again, how many had been called high risk?",
    "false_negative_rate": "Of those arrested again, how many had been called low risk?",
    "positive_predictive_value": "Of those called high risk, how many were arrested again?",
}
_ALPHA = 0.05

_INTRODUCTION = """\
COMPAS is a score from 1 to 10 that courts in the United States use to judge how likely a
defendant is to be arrested again. We call 5 and above "high risk", as ProPublica did in 2016,
and ask of 6,172 defendants in Broward County, Florida: do the score's errors fall on African-
American and Caucasian defendants alike? Any two groups differ a little. The p-value is the
probability that chance alone makes a gap this large or larger where the true rates are equal.
"""

_CLOSING = """\
Three fair questions, three answers. Where base rates differ, no score short of perfect can have
equal error rates and equal predictive values at once; which of them matters is not statistics.
(The file holds too many re-arrests among late screenings, so read its predictive values with
care; see fairperm.datasets.load_compas.)

The same for your own data, with columns of labels, predictions and groups:

    import fairperm
    fairperm.permutation_test(y_true, y_pred, sensitive_features=group, metric="recall")
"""


def main() -> None:
    """Test three gaps of the COMPAS score and print what they say."""
    print(_INTRODUCTION)
    compas = load_compas()
    for metric, question in _QUESTIONS.items():
        result = permutation_test(
            "two_year_recid",
            y_score="decile_score",
            threshold=5,
            sensitive_features="race",
            groups=_GROUPS,
            metric=metric,
            data=compas,
        )
        print(_told(result, question))
    print(_CLOSING)


def _told(result: PermutationTestResult, question: str) -> str:
    lines = [question, f"  ({result.metric}: {get_metric(result.metric).meaning})"]
    for group in result.groups:
        counts = result.counts[group]
        share = f"{counts['numerator']:,} of {counts['denominator']:,}"
        lines.append(f"    {group!s:<17} {result.values[group]:6.1%}  {share}")
    low, high = result.confidence_interval
    p = "below 0.0001" if result.pvalue < 0.0001 else f"{result.pvalue:.4f}"
    how = "exact" if result.exact else f"{result.n_resamples:,} random permutations"
    lines += [
        f"    {'gap':<17} {100 * result.difference:+5.1f} percentage points"
        f"  (95 % interval {100 * low:+.1f} to {100 * high:+.1f})",
        f"    {'p-value':<17} {p}, {how}",
        f"  {_verdict(result)}",
        "",
    ]
    return "\n".join(lines)


def _verdict(result: PermutationTestResult) -> str:
    if result.pvalue <= _ALPHA:
        return "Chance alone would hardly make such a gap: the rates differ."
    return "Chance alone could make such a gap. That is no evidence that the rates are equal."


if __name__ == "__main__":
    main()
