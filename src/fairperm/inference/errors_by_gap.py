"""Standard errors of a gap that depend on the true gap."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar


class ErrorsByGap:
    """The standard error of a gap as a function of the true gap, and what it rests on."""

    __slots__ = ()

    has_trials: ClassVar[bool] = False  # whether it rests on two groups' counts of Bernoulli trials
    is_paired: ClassVar[bool] = False
    """Whether it rests on the rows of a group that changed from one model to another."""

    @property
    def reason(self) -> str:
        """Why no claim is made at a margin, as the second half of a sentence; "" if one is."""
        return ""

    @abstractmethod
    def standard_error(self, gap: float) -> float:
        """Return the standard error of the estimate where this is the true gap."""
