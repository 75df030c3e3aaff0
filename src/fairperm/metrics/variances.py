"""The variances that a gap can be studentized by; None in place of one leaves it as a gap."""

from __future__ import annotations

from enum import StrEnum


class Variance(StrEnum):
    """How the variance of a value is estimated, in the sample and in every draw."""

    SCORE = "score"
    """p(1 − p)/m with the rate p of all groups, which is one rate under the null."""
    WALD = "wald"
    """p(1 − p)/m with each group's own rate p."""
    DELTA = "delta"
    """Sum of the rows' squared influences."""
    DELONG = "delong"
    """DeLong's variance of an AUC."""
    BOOTSTRAP = "bootstrap"
    """Variance of the values in bootstrap samples of each group, in every draw."""
    FAST_BOOTSTRAP = "fast_bootstrap"
    """The same in the observed sample only; permuted gaps are divided by their own deviation."""

    @property
    def is_closed_form(self) -> bool:
        """Whether the variance has a formula, and needs no bootstrap samples."""
        return self not in {Variance.BOOTSTRAP, Variance.FAST_BOOTSTRAP}

    @property
    def is_binomial(self) -> bool:
        """Whether it is the variance of a rate, which needs counts only."""
        return self in {Variance.SCORE, Variance.WALD}

    @property
    def resamples_groups(self) -> bool:
        """Whether the groups of every draw are resampled."""
        return self == Variance.BOOTSTRAP

    def __repr__(self) -> str:
        return repr(self.value)  # as users pass it, and as messages show it
