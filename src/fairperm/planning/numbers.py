"""Numbers of planning that print the sentence they are the answer of."""

from __future__ import annotations

from html import escape
from typing import Any


class _Answers:
    """A number that prints its answer. In a format, in JSON and in sums it is the number."""

    answer: str

    def __repr__(self) -> str:
        return self.answer

    def __str__(self) -> str:
        return self.answer

    def _repr_html_(self) -> str:
        return f"<p><strong>{escape(self.answer)}</strong></p>"


class PlannedNumber(_Answers, float):
    """A power, or a detectable gap.

    Examples
    --------
    >>> found = PlannedNumber(0.8, "The power is 80 %.")
    >>> found
    The power is 80 %.
    >>> f"{found}", found + 0.1, round(found, 2)
    ('0.8', 0.9, 0.8)
    """

    def __new__(cls, value: float, answer: str) -> PlannedNumber:
        found = super().__new__(cls, value)
        found.answer = answer
        return found

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.answer


class PlannedCount(_Answers, int):
    """A number of rows."""

    def __new__(cls, value: int, answer: str) -> PlannedCount:
        found = super().__new__(cls, value)
        found.answer = answer
        return found

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return int(self), self.answer
