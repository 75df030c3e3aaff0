"""Numbers and names as text for people."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_name,
    format_number,
    format_percent,
    format_points,
    format_pvalue,
    isolate_direction,
    join_words,
    name_of_gap,
    shorten,
    state_pvalue,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"),
        (-0.5, "−0.500"),
        (0.0, "0.000"),
        (-0.0, "0.000"),
        (0.0005, "0.001"),
        (0.0001234, "0.00012"),
        (-1.234e-5, "−1.2e−05"),
        (999.5, "999.500"),
        (9999.5, "9,999.5"),
        (123456.7, "123,457"),
        (-1.234e9, "−1.23e+09"),
        (np.float64(2), "2.000"),
        (None, "–"),
        ("no number", "–"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (10**400, "–"),
    ],
)
def test_number(value: Any, text: str) -> None:
    assert format_number(value) == text


def test_sign() -> None:
    signed = [format_number(one, signed=True) for one in (0.1, -0.1, 0.0, math.inf, 1e5, 1e-5)]
    assert signed == ["+0.100", "−0.100", "+0.000", "+∞", "+100,000", "+1e−05"]


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ((-0.535, 7.25e-06), "−0.535 to +0.000"),
        ((-7.25e-06, 0.535), "−0.000 to +0.535"),
        ((-0.0, 0.535), "+0.000 to +0.535"),
        ((1e-05, 2e-05), "+1e−05 to +2e−05"),
        ((-math.inf, 0.2), "−∞ to +0.200"),
        ((-math.inf, math.inf), "−∞ to +∞"),
        ((None, None), "–"),
        (None, "–"),
    ],
)
def test_interval_has_as_many_decimals_as_its_larger_limit_needs(limits: Any, text: str) -> None:
    assert format_interval(limits, signed=True) == text


@pytest.mark.parametrize(
    ("value", "text", "phrase"),
    [
        (1e-60, "< 0.0001", "p < 0.0001"),
        (0.04567, "0.0457", "p = 0.0457"),
        (1, "1.0000", "p = 1.0000"),
        (None, "–", "p = –"),
        (math.nan, "–", "p = –"),
    ],
)
def test_pvalue_is_never_zero(value: float | None, text: str, phrase: str) -> None:
    assert format_pvalue(value) == text
    assert state_pvalue(value) == phrase
    assert state_pvalue(value, "adjusted p") == f"adjusted {phrase}"


def test_count() -> None:
    assert [format_count(one) for one in (1234567, 12.25)] == ["1,234,567", "12.2"]
    assert [format_count(n, "row") for n in (0, 1, 2.5)] == ["0 rows", "1 row", "2.5 rows"]
    assert format_count(2, "hypothesis", "hypotheses") == "2 hypotheses"


def test_percent_and_points() -> None:
    shares = [format_percent(one) for one in (0, 0.5, 0.0123, 0.00456, 1e-9, -0.25)]
    assert shares == ["0.0 %", "50.0 %", "1.2 %", "0.46 %", "< 0.01 %", "−25.0 %"]
    assert [format_points(one) for one in (-0.1234, -0.0, math.inf)] == ["−12.3", "0.0", "∞"]
    assert [format_level(one) for one in (0.95, 0.999, 0.05)] == ["95 %", "99.9 %", "5 %"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("false_negative_rate", "false negative rate"),
        ("roc_auc", "ROC AUC"),
        ("mean_poisson_deviance", "mean Poisson deviance"),
        ("ndcg@10", "nDCG@10"),
        ("my own: x_y", "my own: x_y"),
        ("größe_x", "größe_x"),
    ],
)
def test_metric(name: str, text: str) -> None:
    assert format_metric(name) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain", "plain"),
        (3, "3"),
        (None, "None"),
        (("a", 2), "a × 2"),
        ("a\x00b\n", "a␀b␊"),
        ("a\x85", "a\\u0085"),
        ("\u202eabc\u2028", "\\u202eabc\\u2028"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("☀\ufe0f", "☀\ufe0f"),
        ("a\u200db\u200c", "a\\u200db\\u200c"),
        ("日\ufe0f本\u200d", "日\\ufe0f本\\u200d"),
        ("a\u00a0b\u3164\u2800", "a\\u00a0b\\u3164\\u2800"),
        (" a  b c ", "␠a ␠b c␠"),
        ("\u00e9 \u1ed1", "\u00e9 \u1ed1"),
        ("e\u0301 \u212b", "e\\u0301 \\u212b"),
        ("o\u0302\u0301 \u00f4\u0301", "o\\u0302\u0301 \u00f4\\u0301"),
        ("a\u0301\u0323", "a\\u0301\\u0323"),
        ("\u1112\u1161\u11ab", "\u1112\\u1161\u11ab"),
        ("क\u093c", "क\u093c"),
        ("\u0958", "\\u0958"),
        ("\ud800", "\\ud800"),
        ("", "''"),
        ("   ", "␠␠␠"),
        ("x" * 70, "x" * 44 + "…" + "x" * 15),
    ],
)
def test_name_is_visible_whatever_it_is(name: object, text: str) -> None:
    assert format_name(name) == text
    assert format_name(text) == text


def test_wide_letters_take_two_columns() -> None:
    assert shorten("漢字漢字漢字漢字", 10) == "漢字漢…字"
    assert shorten("漢字漢字漢", 10) == "漢字漢字漢"
    assert shorten("x" * 100, 20) == "x" * 14 + "…" + "x" * 5


def test_gap_is_first_minus_second() -> None:
    assert name_of_gap("a", ("b", 1)) == "a − b × 1"
    assert name_of_gap("x" * 9, "שלום", 8) == "xxxxx…xx − \u2068שלום\u2069"
    assert isolate_direction("abc") == "abc"


def test_words_are_joined() -> None:
    assert [join_words("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_import_is_light() -> None:
    heavy = "{'numpy', 'scipy', 'altair', 'pandas'}"
    code = f"import sys, fairperm._utils.formatting; print({heavy} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
