"""Numbers and names from data as text for people; files for machines keep the values themselves.

A number has three decimals, or two significant digits where three decimals would show none.
A p-value is ``0.0123`` or ``< 0.0001``, never zero. A missing number is a dash. Names from data
show their invisible characters; callers escape them for HTML or Markdown.
"""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairperm.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

NONE = "–"
MINUS = "−"
LONGEST_NAME = 60  # in columns of a terminal
UNNAMED_ATTRIBUTE = "sensitive_features"  # whose groups came as values without a name
_THOUSANDS, _LARGE, _HUGE, _SMALL = 1e3, 1e4, 1e7, 5e-4
_SMALLEST_P = 1e-4
_SMALL_SHARE, _SMALLEST_SHARE = 1e-2, 1e-4
_SMALL_POINTS = 0.05
_NAMES = {
    "roc_auc": "ROC AUC",
    "roc_auc_ovr": "mean ROC AUC of the classes",
    "roc_auc_ovr_weighted": "weighted mean ROC AUC of the classes",
    "f1_score": "F1 score",
    "f1": "F1 score",
    "recall_macro": "mean recall of the classes",
    "precision_macro": "mean precision of the classes",
    "f1_macro": "mean F1 score of the classes",
    "r2_score": "R² score",
    "kolmogorov_smirnov": "Kolmogorov–Smirnov distance",
    "wasserstein": "Wasserstein distance",
    "jensen_shannon": "Jensen–Shannon divergence",
    "kullback_leibler": "Kullback–Leibler divergence",
    "gini": "Gini coefficient",
}
_SPELLINGS = {
    word.lower(): word
    for word in ("Atkinson", "Brier", "Jaccard", "Matthews", "nDCG", "Poisson", "Theil")
}
# Joiners are a part of Persian and Indic words and of emoji, variation selectors of symbols: they
# stay between such characters. These letters and spaces are blank, whatever their category:
_JOINERS = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_BLANKS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0]")
_EXTRA_SPACES = re.compile("^ +|(?<= ) +| +$")
# would command a terminal or reorder its text: controls, and marks of direction and of lines
UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_CONTROLS = re.compile(f"[\0-\x08\x0b-\x1f]|{UNSAFE.pattern}")  # a line end or a tab is quoted
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r]")  # a spreadsheet may run it
# where one splits lines at other characters than commas, with or without quotes
_INNER_FORMULA = re.compile(r'([;\t|\n][\s"]*)(?=[=+\-@＝＋－＠])')
_WORD = re.compile("[a-z]+")
_OF_CLASS = re.compile(r"([a-z0-9_]+)\[(.*)\]", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NBSP = "\N{NO-BREAK SPACE}"
_KEPT = re.compile(r"\bp (=|<|&lt;) [\d.]+|[\d.,]+ (%|points)")  # also in HTML
_BOOLEAN = re.compile("true|false", re.IGNORECASE)


def format_number(value: Any, *, signed: bool = False) -> str:
    """Return a number with three decimals, or with the digits that it needs.

    Examples
    --------
    >>> format_number(0.12345, signed=True), format_number(-0.00012345), format_number(12345.6)
    ('+0.123', '−0.00012', '12,346')
    """
    number = _as_float(value)
    return _write_number(number, abs(number), signed=signed)


def format_beside(value: float, bound: float) -> tuple[str, str]:
    """Return a number and a bound with as many decimals as show which of them is larger.

    Examples
    --------
    >>> format_beside(0.79996, 0.8), format_beside(0.9, 0.8)
    (('0.79996', '0.8'), ('0.900', '0.8'))
    """
    digits = 3
    if not math.isclose(value, bound, rel_tol=1e-12):
        while round(value, digits) == round(bound, digits):
            digits += 1
    text = format_number(value) if digits == 3 else f"{value:.{digits}f}"
    return text, f"{round(bound, digits):.15g}"


def format_parameter(value: float) -> str:
    """Return the parameter of a metric with as many digits as tell it from all others.

    Examples
    --------
    >>> format_parameter(2.0), format_parameter(0.1 + 0.2)
    ('2', '0.30000000000000004')
    """
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def format_interval(limits: tuple[Any, Any] | None, *, signed: bool = False) -> str:
    """Return the limits of an interval, with as many decimals as the larger one needs.

    Examples
    --------
    >>> format_interval((-0.0123, 0.2), signed=True)
    '−0.012 to +0.200'
    """
    numbers = [_as_float(limit) for limit in limits or ()]
    sizes = [abs(number) for number in numbers if math.isfinite(number)]
    if all(map(math.isnan, numbers)):
        return NONE
    texts = (_write_number(one, max(sizes, default=0.0), signed=signed) for one in numbers)
    return " to ".join(texts)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _write_number(number: float, scale: float, *, signed: bool) -> str:
    """Return a number beside others of which the largest has this size."""
    if math.isnan(number):
        return NONE
    size, sign = abs(number), "+" if signed else ""
    if math.isinf(number):
        text = f"{number:{sign}}".replace("inf", "∞")
    elif size >= _LARGE:
        text = f"{number:{sign},.0f}" if size < _HUGE else f"{number:{sign}.3g}"
    elif size >= _THOUSANDS:
        text = f"{number:{sign},.1f}"
    elif size > 0 and scale < _SMALL:
        text = f"{number:{sign}.2g}"
    else:
        text = f"{number + 0.0:{sign}.3f}"  # no −0.0, but −0.0001 is below zero: −0.000
    return text.replace("-", MINUS)


def format_pvalue(value: Any) -> str:
    """Return a p-value, which is never zero.

    Examples
    --------
    >>> format_pvalue(0.01234), format_pvalue(1e-9)
    ('0.0123', '< 0.0001')
    """
    number = _as_float(value)
    if math.isnan(number):
        return NONE
    return f"< {_SMALLEST_P:.4f}" if number < _SMALLEST_P else f"{number:.4f}"


def state_pvalue(value: Any, name: str = "p") -> str:
    """Return a p-value as a phrase: "p = 0.0123" or "p < 0.0001"."""
    text = format_pvalue(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def format_count(value: float, noun: str = "", plural: str = "") -> str:
    """Return a count, with the noun that it counts; weighted counts have a decimal.

    Examples
    --------
    >>> format_count(1, "row"), format_count(2000, "row"), format_count(2, "person", "people")
    ('1 row', '2,000 rows', '2 people')
    """
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    return f"{text} {noun if value == 1 else plural or noun + 's'}" if noun else text


Units: TypeAlias = Literal["rows", "queries", "items"]  # what the rows of a sample are


def singular(units: Units) -> str:
    """Return the word for one of them."""
    return {"rows": "row", "queries": "query", "items": "item"}[units]


def count_units(value: float, units: Units) -> str:
    """Return a number of rows, queries or items.

    Examples
    --------
    >>> count_units(1, "queries"), count_units(2000, "items")
    ('1 query', '2,000 items')
    """
    return format_count(value, singular(units), units)


def format_percent(share: float) -> str:
    """Return a share as a percentage.

    Examples
    --------
    >>> format_percent(0.1234), format_percent(0.001234), format_percent(1e-9)
    ('12.3 %', '0.12 %', '< 0.01 %')
    """
    if 0 < share < _SMALLEST_SHARE:
        return f"< {100 * _SMALLEST_SHARE:g} %"
    text = f"{100 * share:.2g}" if 0 < share < _SMALL_SHARE else format_points(share)
    return f"{text} %"


def format_points(gap: float) -> str:
    """Return a gap between shares in percentage points, without the unit."""
    if not math.isfinite(gap):
        return format_number(gap)
    return f"{100 * gap + 0.0:.1f}".replace("-", MINUS)


def format_level(level: float) -> str:
    """Return a level or a power as a percentage without needless decimals: "95 %"."""
    return f"{100 * level:.4g} %"


def format_metric(name: object) -> str:
    """Return the name of a metric in words if it is written in snake_case, perhaps with "@10".

    Examples
    --------
    >>> format_metric("false_positive_rate"), format_metric("recall[cat]")
    ('false positive rate', 'recall of cat')
    """
    if of_class := _OF_CLASS.fullmatch(str(name)):
        return f"{format_metric(of_class[1])} of {format_name(of_class[2])}"
    text, given, _ = str(name).partition("_given_label")
    is_snake_case = text.isascii() and text.replace("_", "").replace("@", "").isalnum()
    words = _NAMES.get(text, text)
    if words == text and is_snake_case:
        words = _WORD.sub(
            lambda one: _SPELLINGS.get(one[0], one[0]), text.replace("_", " ")
        ).strip()
    return f"{words} given the label" if given else words


def format_name(name: object, longest: int = LONGEST_NAME) -> str:
    """Return a name from data on one line, with its invisible characters made visible.

    Examples
    --------
    >>> format_name("two" + chr(10) + "lines"), format_name(" "), format_name(("Female", 3))
    ('two␊lines', '␠', 'Female × 3')
    """
    if isinstance(name, tuple):
        return shorten(" × ".join(format_name(one, longest) for one in name), longest)
    text = str(name)
    return shorten(make_visible(text) or shown(name), longest)


def format_value(value: object) -> str:
    """Return a value of a column: numbers with decimals like other numbers, all else as names.

    Examples
    --------
    >>> format_value(-4 / 7), format_value(2018), format_value("yes")
    ('−0.571', '2018', 'yes')
    """
    has_decimals = isinstance(value, float) and not value.is_integer()
    return format_number(value) if has_decimals else format_name(value)


def neutralize(cell: object) -> object:
    """Return a cell of a CSV file that no spreadsheet runs and no terminal obeys.

    Examples
    --------
    >>> neutralize("=1+1"), neutralize("-1"), neutralize(-0.5), neutralize("a;=1+1")
    ("'=1+1", '-1', -0.5, "a;'=1+1")
    """
    if cell is None or isinstance(cell, (bool, int, float)):
        return cell
    text = str(cell)
    is_formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    text = _INNER_FORMULA.sub(r"\1'", escape_controls(text))
    return f"'{text}" if is_formula else text


def escape_controls(text: str) -> str:
    """Return a text that no terminal obeys; line ends and tabs stay."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is, and that is no HTML.

    Examples
    --------
    >>> escape_markdown("a_b @me <b>")
    'a_b &#64;me &#60;b&#62;'
    """
    # entities: a backslash does not keep GitHub from linking @people, #1 and addresses
    text = re.sub(r"[&<>@#|`\[\]\\*~$!]", lambda found: f"&#{ord(found[0])};", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", "&#95;", text)
    return text.replace("://", "&#58;//").replace("www.", "www&#46;")


def make_visible(text: str) -> str:
    """Return a text in which invisible characters are seen and none breaks or reorders it.

    Control characters become pictures and other invisible ones codes, as do characters of another
    Unicode form than NFC. Spaces that begin or end the text, or follow another space, become ``␠``.
    """
    text = _EXTRA_SPACES.sub(lambda found: "␠" * len(found[0]), text)
    return "".join(_make_visible(text, i) for i in range(len(text)))


def _make_visible(text: str, i: int) -> str:
    character = text[i]
    if character.isascii() and character.isprintable():
        return character
    if ord(character) < 32:
        return chr(0x2400 + ord(character))
    if _JOINERS.match(character):
        before = text[i - 1 : i] or "."
        shapes = unicodedata.category(before) in {"So", "Sk", "Mn", "Mc", "Cf"}
        is_seen = shapes or unicodedata.bidirectional(before) == "AL"
        is_seen = is_seen and (i + 1 < len(text) or character not in "\u200c\u200d")
    else:
        is_seen = character == "\u3000" or not (
            unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}
            or _BLANKS.match(character)
            or _is_decomposed(text, i)
        )
    return character if is_seen else f"\\u{ord(character):04x}"


def _is_decomposed(text: str, i: int) -> bool:
    """Return whether a character is written in another way in NFC, alone or after the one before.

    "é" as one character and as two looks the same.
    """
    alone, before = unicodedata.normalize("NFC", text[i]), text[i - 1 : i]
    return alone != text[i] or unicodedata.normalize("NFC", before + alone) != (
        unicodedata.normalize("NFC", before) + alone
    )


def shorten(text: str, longest: int = LONGEST_NAME) -> str:
    """Return the beginning and the end of a text that is wider than so many columns."""
    if len(_cut(text, longest)) == len(text):
        return text
    tail = longest // 4
    return f"{_cut(text, longest - tail - 1)}…{_cut(text[::-1], tail)[::-1]}"


def _cut(text: str, width: int) -> str:
    """Return the longest beginning of a text in this width; East Asian letters take two columns."""
    for i, character in enumerate(text):
        width -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width < 0:
            return text[:i]
    return text


def isolate_direction(text: str) -> str:
    """Return a text whose right-to-left letters do not reorder the text around it."""
    has_leftward = any(unicodedata.bidirectional(one) in {"R", "AL", "AN"} for one in text)
    return f"\u2068{text}\u2069" if has_leftward else text


def drop_decimals(group: Any) -> Any:
    """Return the integer for a group that pandas reads as a float because some are missing.

    Examples
    --------
    >>> drop_decimals(2.0), drop_decimals((1.0, "b")), drop_decimals(2.5)
    (2, (1, 'b'), 2.5)
    """
    if isinstance(group, tuple):
        return tuple(drop_decimals(one) for one in group)
    return int(group) if isinstance(group, float) and group.is_integer() else group


def name_group(attribute: str, group: object, longest: int = LONGEST_NAME) -> str:
    """Return the name of a group of an attribute; a number alone would say nothing.

    Examples
    --------
    >>> name_group("sex", "Female"), name_group("male", 0.0), name_group("male × race", (0, "b"))
    ('Female', 'male = 0', 'male = 0 × b')
    """
    if isinstance(group, tuple):
        attributes = attribute.split(" × ")
        if len(attributes) == len(group):
            parts = zip(attributes, group, strict=True)
            return shorten(" × ".join(name_group(*part, longest) for part in parts), longest)
    name = format_name(drop_decimals(group), longest)
    if not attribute or not (_NUMBER.fullmatch(name) or _BOOLEAN.fullmatch(name)):
        return name
    if attribute == UNNAMED_ATTRIBUTE:
        return f"group {name}"
    return f"{format_name(attribute, longest // 2)} = {name}"


def name_of_gap(
    first: object, second: object, longest: int = LONGEST_NAME, *, absolute: bool = False
) -> str:
    """Return the gap between two groups: "a − b", or "a and b" if it is absolute.

    Examples
    --------
    >>> name_of_gap("a", "b"), name_of_gap("male = 0", "male = 1")
    ('a − b', '(male = 0) − (male = 1)')
    >>> name_of_gap("missing", "male = 1")
    '(missing) − (male = 1)'
    """
    names = [isolate_direction(format_name(group, longest)) for group in (first, second)]
    if absolute:
        return " and ".join(names)
    form = "({}) {} ({})" if any(" = " in name for name in names) else "{} {} {}"
    return form.format(names[0], MINUS, names[1])


def format_gap(gap: Any, part: str | None = None) -> str:
    """Return a gap with its sign; that of a joint metric is absolute, and of this part.

    Examples
    --------
    >>> format_gap(-0.25), format_gap(0.25, "true_positive_rate")
    ('−0.250', '0.250 (TPR)')
    """
    if part is None:
        return format_number(gap, signed=True)
    return f"{format_number(gap)} ({abbreviate_metric(part)})"


def abbreviate_metric(name: str) -> str:
    """Return the initials of a name of three words or more: "TPR"."""
    words = name.split("_")
    return "".join(word[:1].upper() for word in words) if len(words) > 2 else format_metric(name)


def keep_units(text: str) -> str:
    """Return a text in which no line begins with a unit, or after "p =": their spaces do not break.

    Examples
    --------
    >>> len(keep_units("a rate of 9.7 % (p = 0.04)").split(" "))
    5
    """
    return _KEPT.sub(lambda found: found[0].replace(" ", _NBSP), text)


def wrap_text(
    text: str, width: int, first: str = "", rest: str | None = None, *, breaks_words: bool = False
) -> list[str]:
    """Return the lines of a paragraph, that begin with ``first`` and then with ``rest``."""
    lines = textwrap.wrap(
        keep_units(text),
        width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=breaks_words,
        break_on_hyphens=False,
    )
    return [line.replace(_NBSP, " ") for line in lines]


def join_words(words: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *rest, last = list(words) or [""]
    return f"{', '.join(rest)} and {last}" if rest else last


@dataclass(frozen=True, slots=True)
class Unit:
    """What values are written in: shares in percent and their gaps in points, or plain numbers.

    Examples
    --------
    >>> Unit(is_share=True).size(0.0912), Unit(is_share=False).signed(-0.0912)
    ('9.1 points', '−0.091')
    """

    is_share: bool

    def value(self, value: Any) -> str:
        """Return a value of the metric."""
        number = _as_float(value)
        return format_percent(number) if self._is_percent(number) else format_number(number)

    def size(self, gap: Any) -> str:
        """Return how large a gap is, without its sign."""
        return self.signed(abs(_as_float(gap))).removeprefix("+")

    def signed(self, gap: Any) -> str:
        """Return a gap with its sign."""
        number = _as_float(gap)
        if not self._is_percent(number):
            return format_number(number, signed=True)
        return f"{MINUS if number < 0 else '+'}{_points(abs(number))} points"

    def interval(self, limits: tuple[Any, Any] | None, *, signed: bool = True) -> str:
        """Return the limits of an interval of gaps."""
        if limits is None or not all(self._is_percent(_as_float(one)) for one in limits):
            return format_interval(limits, signed=signed)
        low, high = map(self.signed if signed else self.size, limits)
        return f"{low.removesuffix(' points')} to {high}"

    def _is_percent(self, number: float) -> bool:
        return self.is_share and math.isfinite(number)


def _points(size: float) -> str:
    """Return percentage points, with two digits where one decimal would show none."""
    return f"{100 * size:.2g}" if 0 < 100 * size < _SMALL_POINTS else format_points(size)
