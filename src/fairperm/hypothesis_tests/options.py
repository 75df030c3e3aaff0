"""The options that tests of groups share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairperm._utils import checks
from fairperm.engines.resampling.blocks import Resampling

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to test: draws, scheme, variance, direction and levels.

    A :class:`fairperm.hypothesis_tests.plan.Plan` resolves ``scheme`` and ``variance``, the strata
    of a table give ``stratum_weights`` their meaning; the others are checked.
    """

    resampling: Resampling
    scheme: object = "auto"
    variance: object = "auto"
    alternative: str = "two-sided"
    stratum_weights: object = None
    n_bootstrap: int = 500
    confidence_level: float = 0.95

    @classmethod
    def check(
        cls,
        *,
        n_resamples: object,
        rng: object,
        n_jobs: object,
        progress: object,
        fewest_resamples: int = 1,
        scheme: object = "auto",
        variance: object = "auto",
        alternative: object = "two-sided",
        stratum_weights: object = None,
        n_bootstrap: object = 500,
        confidence_level: object = 0.95,
    ) -> Options:
        """Return the options of a public function. Raises InputError for a bad one."""
        return cls(
            resampling=Resampling.from_options(
                n_resamples, rng, n_jobs, progress, fewest_resamples
            ),
            scheme=scheme,
            variance=variance,
            alternative=checks.choice("alternative", alternative, checks.ALTERNATIVES),
            stratum_weights=stratum_weights,
            n_bootstrap=checks.integer("n_bootstrap", n_bootstrap, 2, 100_000),
            confidence_level=checks.fraction("confidence_level", confidence_level),
        )

    @property
    def is_limit(self) -> bool:
        """Whether nothing is permuted: p-values are those of the normal limit."""
        return self.resampling.n_resamples == 0

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return self.resampling.seed

    def quiet(self) -> Self:
        """Return the options of one test among many, without a progress bar of its own."""
        return replace(self, resampling=replace(self.resampling, progress=False))
