"""The likeliest two rates that differ by a given difference or ratio, in closed form.

Miettinen and Nurminen, Comparative analysis of two rates, Statistics in Medicine 4, 1985;
Farrington and Manning, Test statistics and sample size formulae for comparative binomial trials
with null hypothesis of non-zero risk difference or non-unity relative risk, ibidem 9, 1990.
"""

from __future__ import annotations

import math

Share = tuple[float, float]  # how many, of how many


def restricted_by_difference(first: Share, second: Share, gap: float) -> tuple[float, float]:
    """Return the likeliest two rates that differ by ``gap``, in closed form.

    The likelihood's derivative is a cubic in the second rate (Miettinen and Nurminen, 1985;
    Farrington and Manning, 1990), whose one root in range its trigonometric solution picks.
    """
    (k, m), (j, n) = first, second
    total, hits = m + n, k + j
    square = ((m + 2 * n) * gap - total - hits) / (3 * total)
    linear = ((n * gap - total - 2 * j) * gap + hits) / (3 * total)
    constant = j * gap * (1 - gap) / total
    half = square**3 - 1.5 * linear * square + constant / 2
    radius = math.copysign(math.sqrt(max(square**2 - linear, 0.0)), half)
    cosine = min(max(half / radius**3, -1.0), 1.0) if radius else 0.0
    q = 2 * radius * math.cos((math.pi + math.acos(cosine)) / 3) - square
    q = min(max(q, -gap, 0.0), 1 - gap, 1.0)
    return min(max(q + gap, 0.0), 1.0), q


def restricted_by_ratio(first: Share, second: Share, ratio: float) -> tuple[float, float]:
    """Return the likeliest two rates whose ratio is ``ratio``, in closed form (ibidem)."""
    (k, m), (j, n) = first, second
    square, hits = (m + n) * ratio, k + j
    linear = m * ratio + k + n + j * ratio
    # the smaller root, in the form that loses no digits
    root = math.sqrt(max(linear**2 - 4 * square * hits, 0.0))
    q = min(2 * hits / (linear + root), 1.0, 1 / ratio)
    return min(ratio * q, 1.0), q
