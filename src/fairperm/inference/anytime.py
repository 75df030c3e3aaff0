"""An interval for a share that holds whenever one stops looking: a confidence sequence."""

from __future__ import annotations

import math


def anytime_interval(successes: int, n: int, confidence_level: float) -> tuple[float, float]:
    """Return an interval for a probability that covers it at every n at once, at this level.

    The likelihood of the outcomes under a share p, as a part of their mean likelihood under shares
    from Jeffreys' prior, is below alpha at any n with a probability of at most alpha if p is true
    (Ville's inequality; Robbins, Ann. Math. Stat. 41, 1970). The interval has the other shares.
    """
    from scipy.optimize import brentq
    from scipy.special import betaln, xlog1py, xlogy

    failures = n - successes
    mean = betaln(successes + 0.5, failures + 0.5) - betaln(0.5, 0.5)
    bound = math.log(1 / (1 - confidence_level))

    def evidence(share: float) -> float:
        return float(mean - xlogy(successes, share) - xlog1py(failures, -share) - bound)

    likeliest = successes / n
    low = brentq(evidence, 0, likeliest, xtol=1e-12) if successes else 0.0
    high = brentq(evidence, likeliest, 1, xtol=1e-12) if failures else 1.0
    return float(low), float(high)
