"""The ways in which metrics read their columns."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """How the columns of a metric are read."""

    BINARY = "binary"
    """Labels and predictions, both 0 or 1; a threshold makes predictions of scores."""
    LABELS = "labels"
    """The same if there are two labels; otherwise labels and predictions are kept as they are."""
    CLASSES = "classes"
    """Labels and predictions of any number of classes, kept as they are."""
    SCORE = "score"
    """Binary labels and scores."""
    PROBABILITY = "probability"
    """Binary labels and scores from 0 to 1."""
    REGRESSION = "regression"
    """Numbers."""
    ANY = "any"
    """Values of any type, kept as they are."""
    SEVERAL = "several"
    """Several metrics at once: binary labels, with predictions, scores or both."""

    @property
    def makes_predictions(self) -> bool:
        """Whether a threshold makes predictions of the scores, and nothing else uses them."""
        return self in {Kind.BINARY, Kind.LABELS}

    @property
    def needs_labels(self) -> bool:
        """Whether labels are read even by a metric of predictions or scores alone."""
        return self in {Kind.BINARY, Kind.LABELS, Kind.SEVERAL}

    @property
    def keeps_values(self) -> bool:
        """Whether columns are read as they are, without making them numbers or truth values."""
        return self in {Kind.ANY, Kind.CLASSES}

    @property
    def is_categorical(self) -> bool:
        """Whether rows have few distinct values: labels and predictions, but no numbers."""
        return self in {Kind.BINARY, Kind.LABELS, Kind.CLASSES}

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Names of the columns that are read as numbers; the others are labels."""
        if self == Kind.REGRESSION:
            return ("y_true", "y_pred", "y_score")
        return ("y_score",) if self in {Kind.SCORE, Kind.PROBABILITY, Kind.SEVERAL} else ()

    def __repr__(self) -> str:
        return repr(self.value)  # as users pass it, and as messages show it
