"""The paper's models: logistic regressions on COMPAS and Adult, and their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from fairperm.datasets import fetch_adult, fetch_compas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Places = NDArray[np.intp]

TRAINED, VALIDATED = 0.70, 0.15  # shares of rows; the rest is for the test
_FOLDS = 5
STRENGTH = 1.0  # scikit-learn's C: one over the strength of the L2 penalty
_COMPAS_NUMBERS = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
_COMPAS_WORDS = ("age_cat", "c_charge_degree")
_ADULT_NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_ADULT_WORDS = (
    *("workclass", "education", "marital-status", "occupation", "relationship", "native-country"),
)


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """Labels, scores and sex of rows that were not in the training data."""

    label: NDArray[np.int64]
    score: Array
    sex: NDArray[Any]

    def at(self, rows: Places) -> ScoredRows:
        """Return the rows at these places."""
        return ScoredRows(self.label[rows], self.score[rows], self.sex[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The labels and features of a data set, without sex and race among the features."""

    label: NDArray[np.int64]
    sex: NDArray[Any]
    numbers: Array
    words: Array

    @classmethod
    def of(
        cls,
        columns: Mapping[str, NDArray[Any]],
        target: str,
        numbers: tuple[str, ...],
        words: tuple[str, ...],
    ) -> Task:
        """Return numbers unchanged, and categories as columns of zeros and ones."""
        indicators = [
            columns[name] == word  # None (missing) is a category too
            for name in words
            for word in sorted(set(columns[name]), key=str)
        ]
        return cls(
            label=columns[target],
            sex=columns["sex"],
            numbers=np.column_stack([columns[name] for name in numbers]).astype(np.float64),
            words=np.column_stack(indicators).astype(np.float64),
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.label)

    def score_test_rows(self, rng: np.random.Generator) -> ScoredRows:
        """Return the test rows of a random split, scored by a model fitted to the training rows.

        The validation rows are set aside as in the paper, but not used: the penalty is fixed.
        """
        order = rng.permutation(self.n)
        train = order[: round(TRAINED * self.n)]
        return self._score(train, order[round((TRAINED + VALIDATED) * self.n) :])

    def cross_fit(self, rng: np.random.Generator) -> ScoredRows:
        """Return all rows, each scored by a model fitted to the other folds."""
        fold = rng.permutation(self.n) % _FOLDS
        score = np.empty(self.n)
        for one in range(_FOLDS):
            rest = np.flatnonzero(fold == one)
            score[rest] = self._score(np.flatnonzero(fold != one), rest).score
        return ScoredRows(self.label, score, self.sex)

    def _score(self, train: Places, rest: Places) -> ScoredRows:
        model = LogisticRegression(C=STRENGTH, solver="newton-cholesky", tol=1e-8, max_iter=1000)
        centre, spread = self.numbers[train].mean(axis=0), self.numbers[train].std(axis=0)
        scaled = (self.numbers - centre) / np.where(spread > 0, spread, 1.0)
        with threadpool_limits(1):  # more threads would sum in another order
            model.fit(np.hstack([scaled[train], self.words[train]]), self.label[train])
        score = model.predict_proba(np.hstack([scaled[rest], self.words[rest]]))[:, 1]
        return ScoredRows(self.label[rest], score, self.sex[rest])


def load_tasks() -> dict[str, Task]:
    """Return the paper's two data sets, COMPAS without the five rows that have no charge."""
    compas = fetch_compas()
    charged = np.array([one is not None for one in compas["c_charge_desc"]])
    compas = {name: column[charged] for name, column in compas.items()}
    return {
        "COMPAS": Task.of(compas, "two_year_recid", _COMPAS_NUMBERS, _COMPAS_WORDS),
        "Adult": Task.of(fetch_adult(), "income", _ADULT_NUMBERS, _ADULT_WORDS),
    }


def compute_auc(scored: ScoredRows) -> float:
    """Return the probability that a positive has a higher score than a negative."""
    from scipy.stats import rankdata

    positive = scored.label == 1
    n, m = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scored.score)[positive].sum()
    return float((ranks - n * (n + 1) / 2) / (n * m))
