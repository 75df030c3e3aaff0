"""The largest size of the exact test of rates, over all pairs of denominators up to 60.

Run ``python -m scripts.rate_test_sizes``: it takes about half an hour. ``docs/method.md`` has what
it prints; ``make validate`` repeats a part of it.
"""

from __future__ import annotations

import itertools

from tests.inference.test_unconditional import LARGER, largest_size

from fairperm._utils.progress import show_progress

LEVELS = (0.01, 0.05, 0.1)


def main() -> None:
    """Print the largest size at each level, and the pair of denominators that has it."""
    pairs = [*itertools.combinations_with_replacement(range(1, 61), 2), *LARGER]
    worst = dict.fromkeys(LEVELS, (0.0, (0, 0)))
    for pair in show_progress(pairs, len(pairs), None):
        for level in LEVELS:
            worst[level] = max(worst[level], (largest_size(*pair, level), pair))
    for level, (size, pair) in worst.items():
        print(f"level {level}: largest size {size:.6f}, with denominators {pair[0]} and {pair[1]}")


if __name__ == "__main__":
    main()
