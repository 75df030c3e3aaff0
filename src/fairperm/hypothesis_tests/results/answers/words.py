"""The words that all answers share: names of groups, values, p-values, and what chance explains."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    Unit,
    format_count,
    format_name,
    format_pvalue,
    isolate_direction,
    name_group,
    state_pvalue,
)
from fairperm.metrics.registry import find_named

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.results.gaps import GapResult
    from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult

Names = tuple[str, str]

_NOT_VALID = "not valid for"  # how the validity of an un-studentized test names the weak null
_MAYBE_CHANCE = "chance could explain {} ({})"
CLEAREST = {True: "The clearest", False: "The least likely by chance"}
_OURS = ("the ", "in ", "within ", "at ", "from ", "with ")  # how clauses begin, or a name does
_ROUNDING = 12  # decimals of a level, which is 1 minus another


def unit_of(metric: str, counts: Iterable[Mapping[str, float]] = ()) -> Unit:
    """Return the unit of a metric's values, which rest on these counts."""
    counts = list(counts)
    is_counted = bool(counts) and all("denominator" in one for one in counts)
    known = find_named(metric.removeprefix("change in "))
    return Unit(is_counted or (known is not None and known.is_rate))


def unit_of_gap(result: GapResult) -> Unit:
    """Return the unit of a gap between two groups."""
    return unit_of(result.part or result.metric, [] if result.part else result.counts.values())


def level_of(result: Any) -> float:
    """Return the level that a result's interval belongs to."""
    return float(round(1 - result.confidence_level, _ROUNDING))


def sentence(text: str) -> str:
    """Return a sentence: it begins with a capital unless with a name, and ends with a stop."""
    is_ours = text.startswith(_OURS)
    return f"{text[:1].upper() if is_ours else text[:1]}{text[1:].rstrip('.')}."


def embed(sentence: str) -> str:
    """Return a sentence as it goes on after a colon."""
    text = f"{sentence[:1].lower()}{sentence[1:]}"
    return text if text.startswith(_OURS) else sentence


def own(name: str, thing: str) -> str:
    """Return "South's rate", or "the rate of male = 1" for names that are not words.

    Examples
    --------
    >>> own("South", "rate"), own("women", "rate"), own("Females", "rate"), own("18 - 25", "rate")
    ("South's rate", "women's rate", "Females' rate", 'the rate of 18 - 25')
    """
    return f"{possessive(name)} {thing}" if is_word(name) else f"the {thing} of {name}"


def than(name: str) -> str:
    """Return " than South's", to compare with a group."""
    return f" than {possessive(name)}" if is_word(name) else f" than that of {name}"


def possessive(name: str) -> str:
    """Return a name as an owner."""
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def is_word(name: str) -> bool:
    """Whether a name reads as words, which can own things."""
    return name.replace("-", "").replace(" ", "").isalpha()


def isolate(name: str) -> str:
    """Return a name that is bidi-isolated."""
    return isolate_direction(format_name(name))


def join_values(unit: Unit, values: Iterable[float]) -> str:
    """Return values as "10.0 % v 20.0 %"."""
    return " v ".join(map(unit.value, values))


def within(result: GapResult | OmnibusTestResult) -> str:
    """Return how a sentence begins whose groups are compared like with like."""
    if is_matched(result):
        return "Within matched sets, "
    return within_strata(result.n_strata)


def is_matched(result: GapResult | OmnibusTestResult) -> bool:
    """Whether groups are compared inside matched sets, whose values are means over the strata."""
    return any("sets" in one for one in result.counts.values())


def are_raw_values(result: GapResult | OmnibusTestResult) -> bool:
    """Whether the values of the groups are those of all strata together, unlike the gap."""
    return result.n_strata > 1 and not is_matched(result)


def within_strata(n: int) -> str:
    """Return how a sentence begins that is about strata, if there are several."""
    return f"Within {n:,} strata (like with like), " if n > 1 else ""


def are(n: int) -> str:
    """Return the verb of so many."""
    return "is" if n == 1 else "are"


def pluralize(metric: str) -> str:
    """Return a metric's name for the values of several groups."""
    return f"{metric}s" if metric.endswith(("rate", "score", "value")) else f"values of {metric}"


def state_p(raw: float | None, adjusted: float | None, result: Any) -> str:
    """Return a p-value with its name: adjusted or not, one-sided, and by clusters."""
    name = "p" if raw == adjusted else "adjusted p"
    if getattr(result, "alternative", "") in {"greater", "less"}:
        name = f"one-sided {name}"
    by = ", by clusters" if has_clusters(result) else ""
    return f"{state_pvalue(adjusted, name)}{by}"


def has_clusters(result: Any) -> bool:
    """Whether clusters were exchanged."""
    counts = getattr(result, "counts", {}).values()
    return any(isinstance(one, Mapping) and "clusters" in one for one in counts)


def judge(result: Any, what: str, stated: str, *, is_shown: bool, open_end: str) -> str:
    """Return whether chance explains a gap, to follow it; ``open_end`` is what it leaves open."""
    if is_shown:
        return f"; {exclude_chance(result, what, stated)}"
    return f"; {_MAYBE_CHANCE.format(what, stated)}{open_end}"


def exclude_chance(result: Any, what: str, stated: str) -> str:
    """Return what does not explain a gap: chance, or only equal distributions."""
    if _rejects_chance(result):
        return f"chance does not explain {what} ({stated})"
    caveat = "but chance may: the test is un-studentized"
    if not hasattr(result, "groups"):
        return f"independence does not explain {what} ({stated}), {caveat}"
    return f"equal distributions do not explain {what} ({stated}), {caveat}"


def _rejects_chance(result: Any) -> bool:
    """Whether a small p-value speaks against equal values, not only against equal distributions."""
    return _NOT_VALID not in result.validity.casefold()


def explain_by(*results: Any) -> str:
    """Return what does not explain significant gaps, with its verb."""
    if all(map(_rejects_chance, results)):
        return "chance explains"
    return "equal distributions explain; un-studentized, chance may"


def say_open(result: GapResult, interval: tuple[float, float], what: str = "gap") -> str:
    """Return which gaps an open result does not rule out."""
    least = getattr(result, "smallest_pvalue", None)
    if least is not None:
        few = f"these data are too few to show any {what}"
        return f"; {few}: the smallest p that they allow is {format_pvalue(least)}"
    if any(map(math.isnan, interval)):
        return f"; how large a {what} is possible is not known"
    if result.alternative in {"greater", "less"}:
        side = "above" if result.alternative == "greater" else "below"
        return f"; no {what} {side} zero is ruled out"
    unit, reach = unit_of_gap(result), max(map(abs, interval))
    if math.isinf(reach) or (unit.is_share and reach >= 1):
        return f"; no {what} is ruled out"
    return f"; {what}s up to {unit.size(reach)} are not ruled out"


def furthest_apart(
    result: OmnibusTestResult,
) -> tuple[tuple[str, float], tuple[str, float]] | None:
    """Return the groups with the lowest and the highest value; None for a joint metric."""
    values = {group: one for group, one in result.values.items() if isinstance(one, (int, float))}
    if len(values) < len(result.groups):
        return None

    def name(group: Hashable) -> str:
        return isolate(name_group(result.attribute, group))

    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return (name(low), values[low]), (name(high), values[high])


def clearest_of(comparisons: Sequence[Any]) -> Any:
    """Return the comparison with the smallest p-value."""
    return min(comparisons, key=lambda one: one.adjusted_pvalue)


def count_first(n: int, of: int, metric: str, clearest: str) -> str:
    """Return how many comparisons show something, then the clearest; that alone if it is one."""
    if of == 1:
        return clearest
    head = f"{n:,} of {format_count(of, 'comparison')} in {metric} {'shows' if n == 1 else 'show'}"
    return f"{head} more than chance explains. {CLEAREST[n > 0]}: {embed(clearest)}"
