"""The result of a study: the paper's values and ours, with Monte Carlo intervals of both.

Every study is a function ``study(*, quick, seed, n_jobs, progress) -> Study`` in the registry of
:mod:`studies.runner`. A study only computes; :mod:`studies.writing` writes files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from fairperm.inference.null import clopper_pearson, normal_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.05  # of every test in the studies, as in the paper
CONFIDENCE = 0.99  # of every Monte Carlo interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One quantity: the paper's value and ours.

    Attributes
    ----------
    quantity : str
        Name of the quantity.
    paper : float or None
        The expected value, from the paper or a formula; None if there is none.
    ours : float
        The value found here.
    interval : tuple of float, or None
        The 99 % Monte Carlo interval of our value; None if it is not random.
    paper_interval : tuple of float, or None
        The same for the paper's value, if it was simulated too.
    agrees : bool or None
        Whether one true value can explain both; None without an expected value.
    remark : str
        What a reader needs to know to judge the value.
    """

    quantity: str
    paper: float | None
    ours: float
    interval: tuple[float, float] | None = None
    paper_interval: tuple[float, float] | None = None
    agrees: bool | None = None
    remark: str = ""

    @classmethod
    def of_share(
        cls,
        quantity: str,
        hits: int,
        trials: int,
        paper: float | None = None,
        paper_trials: int | None = None,
        remark: str = "",
    ) -> Row:
        """Return a share of trials beside the paper's.

        They agree if their difference is within its 99 % interval under one common rate, because
        both have Monte Carlo errors. If the paper's value is exact (``paper_trials`` is None), it
        has to be within our interval.
        """
        interval = clopper_pearson(hits, trials, CONFIDENCE)
        paper_interval = agrees = None
        if paper is not None:
            agrees = interval[0] <= paper <= interval[1]
            if paper_trials is not None:
                paper_hits = round(paper * paper_trials)
                paper_interval = clopper_pearson(paper_hits, paper_trials, CONFIDENCE)
                common = (hits + paper_hits) / (trials + paper_trials)
                error = math.sqrt(common * (1 - common) * (1 / trials + 1 / paper_trials))
                z = normal_quantile(CONFIDENCE)
                agrees = abs(hits / trials - paper) <= z * error
        return cls(
            quantity=quantity,
            paper=paper,
            ours=hits / trials,
            interval=interval,
            paper_interval=paper_interval,
            agrees=agrees,
            remark=remark,
        )

    def cells(self) -> dict[str, Any]:
        """Return the row as plain values, one for each column of a table."""
        low, high = self.interval or (None, None)
        paper_low, paper_high = self.paper_interval or (None, None)
        return {
            "quantity": self.quantity,
            "paper": self.paper,
            "paper_low": paper_low,
            "paper_high": paper_high,
            "ours": self.ours,
            "low": low,
            "high": high,
            "agrees": self.agrees,
            "remark": self.remark,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The result of one study.

    Attributes
    ----------
    name : str
        One of ``studies.NAMES``; file names begin with it.
    title : str
        A headline.
    about : str
        A paragraph on what the paper did and what is done here.
    rows : tuple of Row
        The paper's values and ours.
    settings : mapping
        Sizes and the seed: all that is needed to get the same numbers again.
    notes : tuple of str
        A paragraph on each conclusion, and on each choice that the paper's text leaves open.
    tables : mapping of str to mapping
        The numbers behind charts, columns by name, for files ``<name>-<table>.csv``.
    highlights : tuple of str
        Names of the tables that the page shows too.
    charts : mapping of str to dict
        Vega-Lite specifications (``chart.to_dict()``) that the page shows, for files
        ``<name>-<chart>.svg``, ``.png`` and ``.html``.
    """

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    tables: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    highlights: tuple[str, ...] = ()
    charts: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def row(self, quantity: str) -> Row:
        """Return the row of a quantity."""
        return next(row for row in self.rows if row.quantity == quantity)


class StudyFunction(Protocol):
    """The signature of every study."""

    def __call__(
        self,
        *,
        quick: bool = False,
        seed: int = 0,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> Study:
        """Run the study in full size, or a quick version."""
