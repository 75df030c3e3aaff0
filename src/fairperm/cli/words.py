"""The library's messages in the command line's words: its arguments are options here."""

from __future__ import annotations

import re

_OPTIONS = {
    "y_true": "--label",
    "y_pred": "--prediction",
    "y_score": "--score",
    "sensitive_features": "--group",
    "control_features": "--control",
    "sample_weight": "--weight",
    "n_resamples": "--resamples",
    "n_bootstrap": "--bootstraps",
    "n_jobs": "--jobs",
    "rng": "--seed",
    "metrics": "--metric",
    "groups": "--pair",
    "values": "--first and --second",
    "base_rates": "--base-rate",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("threshold", "pos_label", "stratum_weights", "score_bins", "sample_rows", "cluster"),
            *("missing", "scheme", "variance", "alternative"),
            *("confidence_level", "compare", "reference", "adjust", "alpha", "margin"),
            *("min_group_size", "metric", "thresholds", "value", "share", "decimal"),
            *("n", "power", "intersections"),
        )
    },
}
_BARE = frozenset(  # words that are also English: only where they begin a sentence or have a value
    {"metric", "metrics", "groups", "missing", "threshold", "thresholds", "cluster", "scheme"}
    | {"variance", "alternative", "compare", "reference", "adjust", "alpha", "margin", "values"}
    | {"value", "share", "n", "power", "intersections", "decimal"}
)
_QUOTED = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_GIVEN = re.compile(r"\b(\w+)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[\w.]+|\[[^\]]*\])")
_PAIR = re.compile(rf"\bgroups=\({_QUOTED.pattern}, {_QUOTED.pattern}\)")
_PHRASES = {
    "use audit() for every pair and omnibus_test() for all at once": (
        "use `fairperm audit` for every pair and all at once"
    ),
    "such as y == 'wanted class'": "as with --sql \"SELECT *, x = 'wanted' AS y FROM data\"",
    ", in the rows' result.notes": ", which --json writes",
}
_MARGINS = re.compile(r"margin must be a mapping with metrics of the audit (\(.*\)) as keys")
_DECIMAL_COMMA = re.compile(r"(real numbers; got '[+-]?\d*,\d+'\.) Labels are not scores\.")


def in_options(message: str) -> str:
    """Return a message with ``pos_label='yes'`` as ``--pos-label yes`` and so on."""
    message = _DECIMAL_COMMA.sub(r"\1 Decimal commas take --decimal ','.", message)
    message = _PAIR.sub(r"--pair \1 \2", message)
    for theirs, ours in _PHRASES.items():
        message = message.replace(theirs, ours)
    message = _MARGINS.sub(
        r"margin must be NUMBER, or NAME=NUMBER with one of --metric \1", message
    )
    message = _GIVEN.sub(_as_option, message)
    message = re.sub(r"(must be one of '[^;]*), None;", r"\1, 'none';", message)
    message = re.sub(r"\b(\w+)=(?=[,.;\s]|$)", lambda one: _OPTIONS.get(one[1], one[0]), message)
    first, space, rest = message.partition(" ")
    if first in _OPTIONS:
        message = f"{_OPTIONS[first]}{space}{rest}"
    parts = _QUOTED.split(message)  # every other one is quoted: names from data stay as they are
    parts[::2] = [re.sub(r"(?<![-\w])(\w+)(?![-\w=(])", _named, part) for part in parts[::2]]
    return "".join(parts)


def _as_option(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    if name not in _OPTIONS:
        return found[0]
    if value[:1] in "'\"":
        value = value[1:-1] if re.fullmatch(r"[\w.-]+", value[1:-1]) else value
    return f"{_OPTIONS[name]} {value}"


def _named(found: re.Match[str]) -> str:
    word = found[1]
    return word if word in _BARE else _OPTIONS.get(word, word)
