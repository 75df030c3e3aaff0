"""Metrics in the words of people who have not met them: how to read one, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass

_NO_MISS = "is perfect: the model misses no positive."
_NO_ALARM = "is perfect: the model raises no false alarm."
_ALIKE = "0 means that all benefit alike; the higher, the more unequal."
READINGS = {
    "selection_rate": "0 % means that no one is predicted positive, 100 % that everyone is.",
    "base_rate": "It describes the people, not the model.",
    "true_positive_rate": f"100 % {_NO_MISS}",
    "false_negative_rate": f"0 % {_NO_MISS}",
    "true_negative_rate": f"100 % {_NO_ALARM}",
    "false_positive_rate": f"0 % {_NO_ALARM}",
    "positive_predictive_value": "100 % is perfect: every positive prediction comes true.",
    "false_discovery_rate": "0 % is perfect: every positive prediction comes true.",
    "negative_predictive_value": "100 % is perfect: every negative prediction comes true.",
    "false_omission_rate": "0 % is perfect: every negative prediction comes true.",
    "accuracy": "100 % is perfect: every prediction is right.",
    "error_rate": "0 % is perfect: every prediction is right.",
    "jaccard_score": "1 is perfect, 0 means that no positive is found.",
    "f1_score": "1 is perfect, 0 means that no positive is found.",
    "balanced_accuracy": "1 is perfect, 0.5 is a coin toss.",
    "matthews_corrcoef": "1 is perfect, 0 is a coin toss.",
    "recall_macro": "1 is perfect; every class counts the same, however rare.",
    "precision_macro": "1 is perfect; every class counts the same, however rare.",
    "f1_macro": "1 is perfect, 0 means that every prediction is wrong.",
    "roc_auc": "1 is perfect, 0.5 is a coin toss.",
    "gini": "1 is perfect, 0 is a coin toss.",
    "roc_auc_ovr": "1 is perfect, 0.5 is a coin toss; every class counts the same.",
    "roc_auc_ovr_weighted": "1 is perfect, 0.5 is a coin toss; frequent classes count most.",
    "average_precision": "1 is perfect; the share of positives is what chance would give.",
    "brier_score": "0 is perfect, 0.25 is what a score of one half for everyone gets.",
    "log_loss": "0 is perfect, 0.69 is what a score of one half for everyone gets.",
    "mean_score": "It tells how high the scores are, not whether they are right.",
    "mean_score_positives": "The higher, the better the model recognizes positives.",
    "mean_score_negatives": "The lower, the better the model recognizes negatives.",
    "calibration_in_the_large": "0 is perfect; above 0 scores are too high, below 0 too low.",
    "mean_error": "0 means right on average; above 0 predictions are too high, below 0 too low.",
    "mean_absolute_error": "0 is perfect; it has the unit of the outcome.",
    "mean_squared_error": "0 is perfect; large errors count most.",
    "root_mean_squared_error": "0 is perfect; it has the unit of the outcome.",
    "r2_score": "1 is perfect, 0 is no better than to predict the mean for everyone.",
    "mean_absolute_percentage_error": "0 is perfect, 0.1 means off by 10 % on average.",
    "pinball_loss": "0 is perfect; it has the unit of the outcome.",
    "mean_poisson_deviance": "0 is perfect; the higher, the further off the predicted counts.",
    "mean_gamma_deviance": "0 is perfect; the higher, the further off the predicted amounts.",
    "mean_prediction": "It tells how high the predictions are, not whether they are right.",
    "mean_outcome": "It describes the people, not the model.",
    "generalized_entropy_index": _ALIKE,
    "theil_t_index": _ALIKE,
    "theil_l_index": _ALIKE,
    "atkinson_index": _ALIKE,
    "coefficient_of_variation": _ALIKE,
    "equalized_odds": "0 means that hits and false alarms are as frequent in one group as in the "
    "other.",
}

RANKING_READINGS = {
    "ndcg": "1 means that the most relevant items come first, 0 that no relevant item is in the "
    "top k.",
    "precision": "1 means that every item in the top k is relevant, 0 that none is.",
    "recall": "1 means that every relevant item is in the top k, 0 that none is.",
    "average_precision": "1 means that the relevant items come first.",
    "reciprocal_rank": "1 means that the first item is relevant, 0.5 that the second is the first "
    "relevant one.",
    "hit_rate": "1 means that every list has a relevant item in the top k, 0 that none has.",
    "exposure": "An item at the top has an exposure of 1, one at position 3 of 0.5.",
    "exposure_per_relevance": "It is equal if groups are shown in proportion to their relevance.",
    "top_k_share": "1 means that every item of the group is in the top k, 0 that none is.",
    "skew": "0 means that the group has the same share of the top k as of the lists; above 0 it "
    "has more, below 0 less.",
}


@dataclass(frozen=True, slots=True)
class Case:
    """Whom a rate counts, as the beginning of a sentence, and whether it is better if high."""

    text: str
    is_favourable: bool = False


_CASES = {
    "selection_rate": Case("Among all people, {predicted}"),
    "true_positive_rate": Case("Among {positives}, the model rightly flagged", True),
    "false_negative_rate": Case("Among {positives}, the model missed"),
    "true_negative_rate": Case("Among {negatives}, the model rightly did not flag", True),
    "false_positive_rate": Case("Among {negatives}, the model wrongly flagged"),
    "positive_predictive_value": Case("Among {yes}, the prediction was right for", True),
    "false_discovery_rate": Case("Among {yes}, the prediction was wrong for"),
    "negative_predictive_value": Case("Among {no}, the prediction was right for", True),
    "false_omission_rate": Case("Among {no}, the prediction was wrong for"),
    "accuracy": Case("Among all people, the prediction was right for", True),
    "error_rate": Case("Among all people, the prediction was wrong for"),
}


def find_case(
    metric: str,
    positive_means: str | None,
    negative_means: str | None = None,
    *,
    are_decisions: bool = False,
) -> Case | None:
    """Return whom a rate counts, in the words of the case; None for other metrics.

    ``negative_means`` is the opposite of ``positive_means``; ``are_decisions`` says that no model
    made the predictions.

    Examples
    --------
    >>> find_case("false_negative_rate", "passed the exam").text
    'Among people who passed the exam, the model missed'
    >>> find_case("false_positive_rate", "passed the exam", "failed the exam").text
    'Among people who failed the exam, the model wrongly flagged'
    >>> find_case("selection_rate", "were hired", are_decisions=True).text
    'Among all people, the decision was “were hired” for'
    """
    case = _CASES.get(metric)
    if case is None:
        return None
    outcome = f"“{positive_means}”" if positive_means else "positive"
    predicted = f"the model predicted {outcome if positive_means else 'a positive outcome'}"
    predicted, verb = (
        (f"the decision was {outcome}", "decided") if are_decisions else (predicted, "predicted")
    )
    negatives = f"people who {negative_means or 'have a negative label'}"
    if positive_means and not negative_means:
        negatives = f"people of whom it is not true that they {positive_means}"
    text = case.text.format(
        predicted=f"{predicted} for",
        positives=f"people who {positive_means or 'have a positive label'}",
        negatives=negatives,
        yes=f"people {verb} {outcome}",
        no=f"people not {verb} {outcome}",
    )
    text = text.replace("the model", "the decision") if are_decisions else text
    return Case(text, case.is_favourable)
