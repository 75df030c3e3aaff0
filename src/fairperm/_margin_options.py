"""The arguments of tests with a margin, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Required, TypedDict

from fairperm._options import number
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, problem

if TYPE_CHECKING:
    import numpy as np

_DECIDED = ("alternative", "variance", "n_bootstrap")


class PermutationOptions(TypedDict, total=False):
    """What :func:`fairperm.permutation_test` takes, but for what a margin decides.

    A margin has its direction, so that there is no ``alternative``; and an error that holds away
    from equality is called for, so that there is no choice of ``variance``.
    """

    y_score: object
    sensitive_features: Required[object]
    metric: Required[object]
    data: object
    groups: object
    threshold: float | None
    pos_label: object
    control_features: object
    stratum_weights: object
    cluster: object
    sample_weight: object
    missing: str
    score_bins: int | None
    sample_rows: int | None
    scheme: str
    n_resamples: int
    confidence_level: float
    rng: int | np.random.Generator | None
    n_jobs: int | None
    progress: bool | None


def read_options(options: PermutationOptions) -> PermutationOptions:
    """Return the options if permutation_test takes all of them, and none that a margin decides."""
    known = PermutationOptions.__annotations__
    for name in options:
        if name not in known:
            rule = f"keyword arguments out of {listed(known, most=len(known))}"
            hint = "The margin decides that." if name in _DECIDED else did_you_mean(name, known)
            raise InputTypeError(problem("options", rule, name, hint))
    for name in ("sensitive_features", "metric"):
        if name not in options:
            rule = f"keyword arguments with {name!r} among them"
            raise InputTypeError(problem("options", rule, [*options]))
    return options


def read_bounds(margin: object, ratio: object) -> tuple[str, tuple[float, float]]:
    """Return what has the margin, a difference or a ratio, and its two ends."""
    if (margin is None) == (ratio is None):
        rule = "given, or else ratio: one of them, and not both"
        raise InputError(problem("margin", rule, {"margin": margin, "ratio": ratio}))
    if ratio is None:
        return "difference", _ends(margin)
    rule = "a number strictly between 0 and 1"
    share = number("ratio", ratio, rule)
    if 0 < share < 1:
        return "ratio", (share, 1 / share)
    hint = f"For {share:g} pass {1 / share:g}: it bounds the ratio both ways." if share > 1 else ""
    raise InputError(problem("ratio", rule, ratio, hint))


def _ends(margin: object) -> tuple[float, float]:
    """Return how far below and how far above the second group's value the first's may lie."""
    rule = "a number above 0, or a pair of one below and one above 0"
    if isinstance(margin, (tuple, list)) and len(margin) == 2:
        low, high = (number("margin", end, rule) for end in margin)
    else:
        high = number("margin", margin, rule)
        low = -high
    if not low < 0 < high:
        raise InputError(problem("margin", rule, margin))
    return low, high
