"""Short names of groups, and colours that can be seen."""

from __future__ import annotations

import re
from collections.abc import Hashable
from importlib.resources import files

from fairperm.hypothesis_tests.results.audits import GroupSummary
from fairperm.report.view import ShortNames, find_look_alikes


def test_short_names_differ() -> None:
    long, longer = "x" * 100 + "a" + "y" * 100, "x" * 100 + "b" + "y" * 100
    groups: list[tuple[str, Hashable]] = [("x", one) for one in (long, longer, 1, "1", ("a", 2))]
    groups += [("y", long), ("y", 1), ("x × y", ("a", 2))]
    names = ShortNames(groups)
    shown = [names[one] for one in groups]
    assert len(set(shown)) == 7
    assert all(len(one) <= 64 for one in shown)
    assert shown[0] == shown[5]
    assert shown[2:5] == ["x = 1", "x = 1 (2)", "a × 2"]
    assert shown[6:] == ["y = 1", "a × y = 2"]


def test_groups_that_may_be_one_are_noted() -> None:
    groups = [
        GroupSummary(attribute=of, group=name, rows=9, positives=1, is_small=True)
        for of, name in (("sex", "Male"), ("sex", "male "), ("sex", "Female"), ("race", "MALE"))
    ]
    (note,) = find_look_alikes(groups)
    assert note.startswith("Groups of 'sex' have names that differ only in case or spaces; they")
    assert note.endswith(": 'Male', 'male '.")


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
