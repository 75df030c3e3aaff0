"""How often two-sided tests reject, by twice the smaller tail and by |S|.

Run ``python -m scripts.two_sided_tests``: it takes about four minutes. ``docs/method.md`` has what
it prints; ``make validate`` checks the same settings with fewer data sets.
"""

from __future__ import annotations

from tests.hypothesis_tests.test_two_tails import BETTER, DESIGN, LIBERAL, WORSE, rejections

DATA_SETS, PERMUTATIONS = 1_500, 499


def main() -> None:
    """Print the shares of data sets in which each test rejects at 0.05."""
    for name, setting in (WORSE | BETTER | DESIGN | LIBERAL).items():
        two_sided, symmetric = rejections(setting, DATA_SETS, PERMUTATIONS)
        print(f"{name}: {symmetric / DATA_SETS:.3f} by |S|, {two_sided / DATA_SETS:.3f} two-sided")


if __name__ == "__main__":
    main()
