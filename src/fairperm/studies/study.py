"""What a study found: the paper's values and ours, with what chance does to both.

Every study is a function ``study(*, quick, seed, n_jobs, progress) -> Study`` that the registry
in ``fairperm.studies`` lists; writing files and pages is ``_writing``'s, so a study only computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from fairperm.errors import FairpermError
from fairperm.inference.intervals import clopper_pearson, normal_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.05  # of every test in the studies, as in the paper
CONFIDENCE = 0.99  # of every Monte Carlo interval


class UnavailableError(FairpermError):
    """What a study cannot do without (another library) is not on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One quantity: the paper's value and ours.

    Attributes
    ----------
    quantity : str
        What was measured.
    paper : float or None
        The value that is to come out: the paper's, or a formula's; None if there is none.
    ours : float
        The value that came out.
    interval : tuple of float, or None
        The 99 % Monte Carlo interval of ours; None if chance has no part in it.
    paper_interval : tuple of float, or None
        That of the paper's value, if it was a simulation too.
    agrees : bool or None
        Whether both can be of one truth; None if there is nothing to agree with.
    remark : str
        What a reader must know to judge it.
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

        They agree if their difference is within its 99 % interval under one common rate: both
        runs have their Monte Carlo errors, unless the paper's value is exact (``paper_trials``
        None), and then it has to be in our interval.
        """
        interval = clopper_pearson(hits, trials, CONFIDENCE)
        theirs = agrees = None
        if paper is not None:
            agrees = interval[0] <= paper <= interval[1]
            if paper_trials is not None:
                paper_hits = round(paper * paper_trials)
                theirs = clopper_pearson(paper_hits, paper_trials, CONFIDENCE)
                common = (hits + paper_hits) / (trials + paper_trials)
                error = math.sqrt(common * (1 - common) * (1 / trials + 1 / paper_trials))
                z = normal_quantile(CONFIDENCE)
                agrees = abs(hits / trials - paper) <= z * error
        return cls(
            quantity=quantity,
            paper=paper,
            ours=hits / trials,
            interval=interval,
            paper_interval=theirs,
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
    """What one study found.

    Attributes
    ----------
    name : str
        As in ``fairperm.studies.NAMES``; files are named by it.
    title : str
        A headline.
    about : str
        What the paper did and what was done here: a paragraph.
    rows : tuple of Row
        The paper's values and ours.
    settings : mapping
        Sizes and the seed: all that is needed to get the same numbers again.
    missing : tuple of str
        Data of the paper that are not on this machine, what was done without them and how to get
        them; a paragraph each.
    notes : tuple of str
        What follows from the rows, or does not follow from the paper's text; a paragraph each.
    tables : mapping of str to mapping
        The numbers behind charts, columns by name: each is written to ``<name>-<table>.csv``.
    highlights : tuple of str
        The tables that the page shows too.
    charts : mapping of str to dict
        Vega-Lite specifications (``chart.to_dict()``): each is written to
        ``<name>-<chart>.svg``, ``.png`` and ``.html``, and shown in the page.
    """

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    settings: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tables: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    highlights: tuple[str, ...] = ()
    charts: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def row(self, quantity: str) -> Row:
        """Return the row of a quantity."""
        return next(row for row in self.rows if row.quantity == quantity)


class StudyFunction(Protocol):
    """How every study is called."""

    def __call__(
        self,
        *,
        quick: bool = False,
        seed: int = 0,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> Study:
        """Run the study, in its full size or in a quick one."""
