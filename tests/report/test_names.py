"""How a report writes names and numbers, and that they can be seen."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest

from fairperm.hypothesis_tests.results.audits import GroupSummary
from fairperm.report.names import (
    Names,
    count,
    interval,
    look_alikes,
    number,
    pvalue,
    shortened,
    visible,
)


def test_names_are_told_apart_when_shortened() -> None:
    long, longer = "x" * 100 + "a" + "y" * 100, "x" * 100 + "b" + "y" * 100
    names = Names([long, longer, 1, "1", ("a", 2)])
    shown = [names.of(one) for one in (long, longer, 1, "1", ("a", 2))]
    assert len(set(shown)) == 5
    assert all(len(one) <= 64 for one in shown)
    assert shown[4] == "a × 2"


def test_names_are_visible_whatever_they_are() -> None:
    assert visible("a\x00b\n") == "a␀b␊"
    assert visible("a\x85") == "a\\u0085"
    assert visible("\u202eabc\u2028") == "\\u202eabc\\u2028"
    assert visible("\ud800") == "\\ud800"
    assert visible("") == "''"
    assert visible("   ") == "'   '"
    assert shortened("x" * 100, 20) == "x" * 14 + "…" + "x" * 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"),
        (-0.5, "−0.500"),
        (0.0, "0.000"),
        (-0.0, "0.000"),
        ({"a": -0.0}, "a 0.000"),
        (0.0001, "0.0001"),
        (123456.0, "1.23e+05"),
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "no limit"),
        ({"true_positive_rate": 0.5, "fpr_": 0.25}, "true positive rate 0.500, fpr_ 0.250"),
    ],
)
def test_numbers_are_written_to_be_read(value: Any, text: str) -> None:
    assert number(value) == text


def test_limits_have_as_many_decimals_as_the_larger_one_needs() -> None:
    assert interval((-0.535, 7.25e-06), "+") == "−0.535 to +0.000"
    assert interval((-7.25e-06, 0.535), "+") == "+0.000 to +0.535"
    assert interval((1e-05, 2e-05)) == "1e−05 to 2e−05"


def test_groups_that_may_be_one_are_told() -> None:
    groups = [
        GroupSummary(attribute=of, group=name, rows=9, positives=1, is_small=True)
        for of, name in (("sex", "Male"), ("sex", "male "), ("sex", "Female"), ("race", "MALE"))
    ]
    (told,) = look_alikes(groups)
    assert told.startswith("Groups of 'sex' have names that differ only in capitals or spaces")
    assert told.endswith(": 'Male', 'male '.")


def test_p_values_are_never_zero_and_counts_have_commas() -> None:
    assert pvalue(1e-60) == "< 0.0001"
    assert pvalue(0.04567) == "0.0457"
    assert count(1234567) == "1,234,567"
    assert count(12.25) == "12.2"


# Colours.


def test_contrast_is_enough_on_light_and_dark_pages() -> None:
    css = files("fairperm.report").joinpath("templates", "page.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--fp-([\w-]+): (#\w+)", part)) for part in modes(css))
    for colours in (light, light | dark):
        for ink in ("ink", "muted", "accent"):
            for ground in ("page", "card"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        for verdict in ("bad", "good", "open", "none"):
            assert contrast(colours[f"{verdict}-ink"], colours[verdict]) >= 4.5, verdict


def modes(css: str) -> tuple[str, str]:
    light, rest = css.split("@media screen and (prefers-color-scheme: dark)")
    return light, rest[: rest.index("\n}")]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * one for one in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
