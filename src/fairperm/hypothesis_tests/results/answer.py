"""The answer of every result: one sentence in words, which comes first wherever it is shown.

Every sentence is about the very numbers of its result. Gaps of rates are in percentage points, all
others in the metric's own unit. What is not significant is never called fair or equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    Unit,
    format_beside,
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_name,
    format_number,
    format_percent,
    format_pvalue,
    isolate_direction,
    join_words,
    name_group,
    name_of_gap,
    state_pvalue,
)
from fairperm.metrics.registry import find_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow
    from fairperm.hypothesis_tests.results.changes import (
        ChangeResult,
        GapChange,
        ModelComparisonResult,
        PeriodChange,
        PeriodComparisonResult,
    )
    from fairperm.hypothesis_tests.results.distances import (
        DistanceComparison,
        DistanceTestResult,
    )
    from fairperm.hypothesis_tests.results.equivalence import EquivalenceTestResult
    from fairperm.hypothesis_tests.results.gaps import GapResult
    from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
    from fairperm.hypothesis_tests.results.rankings import ListDivergence, RankingTestResult
    from fairperm.hypothesis_tests.results.sweeps import MetricSweep, ThresholdSweepResult

    Names = tuple[str, str]

_NOT_VALID = "not valid for"  # how the validity of an un-studentized test names the weak null
_MAYBE_CHANCE = "chance could explain {} ({})"
_CLEAREST = {True: "The clearest", False: "The least likely by chance"}
_OURS = ("the ", "in ", "within ", "at ", "from ", "with ")  # how clauses begin, or a name does
_ROUNDING = 12  # decimals of a level, which is 1 minus another


def unit_of(metric: str, counts: Iterable[Mapping[str, float]] = ()) -> Unit:
    """Return the unit of a metric's values, which rest on these counts."""
    counts = list(counts)
    is_counted = bool(counts) and all("denominator" in one for one in counts)
    known = find_named(metric.removeprefix("change in "))
    return Unit(is_counted or (known is not None and known.is_rate))


def unit_of_row(row: AuditRow) -> Unit:
    """Return the unit of a row's values."""
    if row.result is None or row.is_distance:
        return Unit(is_share=False)
    return _unit_of(row.result)


def level_of(result: Any) -> float:
    """Return the level that a result's interval belongs to."""
    return float(round(1 - result.confidence_level, _ROUNDING))


# Gaps between two groups.


def answer_gap(result: GapResult) -> str:
    """Return the gap of a single test, and whether chance explains it."""
    adjusted = getattr(result, "adjusted_pvalue", result.pvalue)
    p = _state_p(result.pvalue, adjusted, result)
    judged = _judge(
        result,
        "it",
        p,
        is_shown=adjusted <= level_of(result),
        open_end=_say_open(result, result.confidence_interval),
    )
    return _sentence(f"{describe_gap(result, result.names)}{judged}")


def describe_gap(result: GapResult, names: Names) -> str:
    """Return which group has the higher value, by how much, and both values."""
    metric, unit = format_metric(result.metric), _unit_of(result)
    first, second = map(_isolate, names)
    within = _within(result)
    overall = "not standardized, over all strata: " if result.n_strata > 1 else ""
    if result.is_joint and result.part is None:  # a distance
        distance = format_number(result.difference)
        return f"{within}the {metric} between {first} and {second} is {distance}"
    if result.part is not None:
        parts = (result.values[group][result.part] for group in result.groups)
        values = f"{overall}{format_metric(result.part)}: {_join_values(unit, parts)}"
        size = unit.size(result.difference)
        return f"{within}{first} and {second} differ in {metric} by up to {size} ({values})"
    if any("weight" in one for one in result.counts.values()):
        metric = f"weighted {metric}"
    order = (0, 1) if result.difference >= 0 else (1, 0)
    both = _join_values(unit, (result.values[result.groups[place]] for place in order))
    values = f"{overall}{both}"
    if result.difference == 0:
        return f"{within}{first} and {second} have the same {metric} ({values})"
    high, low = ((first, second)[place] for place in order)
    size = unit.size(result.difference)
    mean = " on average" if result.n_strata > 1 else ""
    return f"{within}{own(high, metric)} is {size} higher{_than(low)}{mean} ({values})"


def answer_row(row: AuditRow, names: Names | None = None) -> str:
    """Return the gap of a row of an audit and its verdict; perhaps with other names of groups."""
    return _sentence(f"{describe_row(row, names)}{judge_row(row)}")


def describe_row(row: AuditRow, names: Names | None = None) -> str:
    """Return the gap of a row of an audit."""
    first, second = map(_isolate, names or row.names)
    result, metric = row.result, format_metric(row.metric)
    if result is None or row.difference is None:
        return f"{first} and {second} are not compared in {metric}"
    if row.is_distance:
        chance = f"chance alone makes {format_number(row.expected)} on average"
        gap = format_number(row.difference)
        return f"The {metric} between {first} and {second} is {gap}, where {chance}"
    return describe_gap(result, (first, second))


def judge_row(row: AuditRow) -> str:
    """Return what an audit says of a gap, to follow it."""
    result, margin, p = row.result, row.margin, row.adjusted_pvalue
    if row.verdict == "too small" or result is None or p is None:
        return f"; not judged: {row.reason.rstrip('.')}"
    size = "" if margin is None else _unit_of(result).size(margin)
    if row.verdict == "disparity" and margin is None:
        return f"; {_exclude_chance(result, 'it', _state_p(row.pvalue, p, result))}"
    if row.verdict == "disparity":
        stated = _state_p(row.exceedance_pvalue, row.adjusted_exceedance_pvalue, result)
        return f"; it exceeds the margin of {size} ({stated})"
    if row.verdict == "equivalent":
        stated = _state_p(row.equivalence_pvalue, row.adjusted_equivalence_pvalue, result)
        return f"; it is within the margin of {size} ({stated})"
    stated, interval = _state_p(row.pvalue, p, result), row.adjusted_interval
    if margin is not None and is_gap_shown(row):
        beyond = f"but whether it exceeds the margin of {size} is undecided"
        return f"; {_exclude_chance(result, 'it', stated)}, {beyond}"
    open_end = "" if interval is None else _say_open(result, interval)
    if margin is not None:
        open_end += f"{' and' if open_end else '; here'} the margin is {size}"
    return _judge(result, "it", stated, is_shown=False, open_end=open_end)


def _unit_of(result: GapResult) -> Unit:
    return unit_of(result.part or result.metric, [] if result.part else result.counts.values())


def _within(result: GapResult | OmnibusTestResult) -> str:
    if any("sets" in one for one in result.counts.values()):
        return "Within matched sets, "
    return _within_strata(result.n_strata)


def _within_strata(n: int) -> str:
    return f"Within {n:,} strata (like with like), " if n > 1 else ""


def own(name: str, thing: str) -> str:
    """Return "South's rate", or "the rate of male = 1" for names that are not words.

    Examples
    --------
    >>> own("South", "rate"), own("women", "rate"), own("Females", "rate"), own("18 - 25", "rate")
    ("South's rate", "women's rate", "Females' rate", 'the rate of 18 - 25')
    """
    return f"{_possessive(name)} {thing}" if _is_word(name) else f"the {thing} of {name}"


def _than(name: str) -> str:
    return f" than {_possessive(name)}" if _is_word(name) else f" than that of {name}"


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _is_word(name: str) -> bool:
    return name.replace("-", "").replace(" ", "").isalpha()


def _isolate(name: str) -> str:
    return isolate_direction(format_name(name))


def _join_values(unit: Unit, values: Iterable[float]) -> str:
    return " v ".join(map(unit.value, values))


def _state_p(raw: float | None, adjusted: float | None, result: Any) -> str:
    """Return a p-value with its name: adjusted or not, one-sided, and by clusters."""
    name = "p" if raw == adjusted else "adjusted p"
    if getattr(result, "alternative", "") in {"greater", "less"}:
        name = f"one-sided {name}"
    by = ", by clusters" if _has_clusters(result) else ""
    return f"{state_pvalue(adjusted, name)}{by}"


def _has_clusters(result: Any) -> bool:
    counts = getattr(result, "counts", {}).values()
    return any(isinstance(one, Mapping) and "clusters" in one for one in counts)


def _judge(result: Any, what: str, stated: str, *, is_shown: bool, open_end: str) -> str:
    """Return whether chance explains a gap, to follow it; ``open_end`` is what it leaves open."""
    if is_shown:
        return f"; {_exclude_chance(result, what, stated)}"
    return f"; {_MAYBE_CHANCE.format(what, stated)}{open_end}"


def _exclude_chance(result: Any, what: str, stated: str) -> str:
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


def _say_open(result: GapResult, interval: tuple[float, float], what: str = "gap") -> str:
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
    unit, reach = _unit_of(result), max(map(abs, interval))
    if math.isinf(reach) or (unit.is_share and reach >= 1):
        return f"; no {what} is ruled out"
    return f"; {what}s up to {unit.size(reach)} are not ruled out"


def _sentence(text: str) -> str:
    """Return a sentence: it begins with a capital unless with a name, and ends with a stop."""
    is_ours = text.startswith(_OURS)
    return f"{text[:1].upper() if is_ours else text[:1]}{text[1:].rstrip('.')}."


def _embed(sentence: str) -> str:
    """Return a sentence as it goes on after a colon."""
    text = f"{sentence[:1].lower()}{sentence[1:]}"
    return text if text.startswith(_OURS) else sentence


# Changes of a gap.


def answer_change(result: ModelComparisonResult) -> str:
    """Return how a new model changes the gap, and whether chance explains the change."""
    return _answer_change(result, "With the new model", result.pvalue)


def answer_period_change(result: PeriodChange, periods: Names) -> str:
    """Return how the gap changed from one period to another."""
    old, new = periods
    return _answer_change(result, f"From {old} to {new}", result.adjusted_pvalue)


def _answer_change(result: ChangeResult, when: str, adjusted: float) -> str:
    stated = _state_p(result.pvalue, adjusted, result)
    judged = _judge(
        result,
        "the change",
        stated,
        is_shown=adjusted <= level_of(result),
        open_end=_say_open(result, result.confidence_interval, "change"),
    )
    return _sentence(f"{when} {describe_change(result, result.names)}{judged}")


def describe_change(result: ChangeResult, names: Names) -> str:
    """Return the old and the new gap between two groups."""
    metric = format_metric(result.metric.removeprefix("change in "))
    unit = _unit_of(result)
    if result.part is not None:
        part = result.part.removeprefix("change in ")
        old, new = (one[part] for one in (result.gap_old, result.gap_new))
        metric = f"{metric} ({format_metric(part)})"
    else:
        old, new = result.gap_old, result.gap_new
    gap = name_of_gap(*names)
    within = _within(result).lower()
    old_text, new_text = unit.signed(old).removesuffix(" points"), unit.signed(new)
    return f"{within}the gap in {metric}, {gap}, goes from {old_text} to {new_text}"


def answer_gap_change(change: GapChange) -> str:
    """Return what a new model does to a gap of an audit, and its verdict."""
    result = change.result
    if result is None or change.adjusted_pvalue is None:
        return _sentence(f"The change is not judged: {change.reason}")
    text = f"With the new model {describe_change(result, result.names)}"
    stated = _state_p(result.pvalue, change.adjusted_pvalue, result)
    if change.verdict == "inconclusive":
        interval = change.adjusted_interval
        open_end = "" if interval is None else _say_open(result, interval, "change")
        judged = _judge(result, "the change", stated, is_shown=False, open_end=open_end)
        return _sentence(text + judged)
    return _sentence(f"{text}; {change.reason}")


def answer_periods(result: PeriodComparisonResult, names: Sequence[str]) -> str:
    """Return in how many periods the gap changed; ``names`` are those of the periods."""
    first = result.gaps[result.periods[0]]
    by_period = dict(zip(result.periods, names, strict=True))

    def answer(change: PeriodChange) -> str:
        old, new = (by_period[one] for one in change.periods)
        return answer_period_change(change, (old, new))

    if len(result.changes) == 1:
        return answer(result.changes[0])
    shown = [one for one in result.changes if one.adjusted_pvalue <= level_of(first)]
    clearest = min(shown or result.changes, key=lambda one: one.adjusted_pvalue)
    n = format_count(len(result.changes), "change")
    gap = f"the gap in {format_metric(result.metric)}"
    head = f"{len(shown):,} of {n} of {gap} {_are(len(shown))} more than chance explains"
    return f"{head}. {_CLEAREST[bool(shown)]}: {_embed(answer(clearest))}"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


# Distances, all groups at once, correlations.


def answer_distance(result: DistanceTestResult, one: DistanceComparison) -> str:
    """Return the distance between two groups, and whether chance explains it."""
    first, second = (_isolate(name_group(result.attribute, group)) for group in one.groups)
    given = " given the label" if one.by_label is not None else ""
    head = (
        f"{_within_strata(result.n_strata)}the {format_metric(result.distance)}{given} between "
        f"{first} and {second} is {format_number(one.distance)}, where chance alone makes "
        f"{format_number(one.expected)} on average"
    )
    stated = _state_p(one.pvalue, one.adjusted_pvalue, one)
    is_shown = one.adjusted_pvalue <= level_of(result)
    end = "; a difference of the distributions is not ruled out"
    return _sentence(head + _judge(result, "it", stated, is_shown=is_shown, open_end=end))


def answer_distances(result: DistanceTestResult) -> str:
    """Return how many pairs of groups differ, and the clearest."""
    n = sum(one.adjusted_pvalue <= level_of(result) for one in result.comparisons)
    what = format_metric(result.distance)
    return _count_first(
        n, len(result.comparisons), what, answer_distance(result, _clearest(result.comparisons))
    )


def answer_ranking(result: RankingTestResult) -> str:
    """Return how many gaps are larger than chance explains, and the clearest."""
    clearest = _clearest(result.comparisons)
    n = sum(one.adjusted_pvalue <= level_of(one) for one in result.comparisons)
    return _count_first(n, len(result.comparisons), format_metric(result.metric), clearest.answer)


def _clearest(comparisons: Sequence[Any]) -> Any:
    return min(comparisons, key=lambda one: one.adjusted_pvalue)


def _count_first(n: int, of: int, metric: str, clearest: str) -> str:
    """Return how many comparisons show something, then the clearest; that alone if it is one."""
    if of == 1:
        return clearest
    head = f"{n:,} of {format_count(of, 'comparison')} in {metric} {'shows' if n == 1 else 'show'}"
    return f"{head} more than chance explains. {_CLEAREST[n > 0]}: {_embed(clearest)}"


def answer_divergence(result: ListDivergence) -> str:
    """Return how far the tops of lists are from the groups' shares of them."""
    head = (
        "At the top of the lists groups have other shares than in the whole lists: "
        f"{format_metric(result.metric)} is {format_number(result.value)}, where random order "
        f"makes {format_number(result.expected)} on average"
    )
    stated = _state_p(result.pvalue, result.pvalue, result)
    is_shown = result.pvalue <= level_of(result)
    end = "; a difference is not ruled out"
    return _sentence(head + _judge(result, "it", stated, is_shown=is_shown, open_end=end))


def answer_omnibus(result: OmnibusTestResult) -> str:
    """Return whether groups differ, and which two are furthest apart."""
    stated = _state_p(result.pvalue, result.pvalue, result)
    what = "the differences"
    end = "; a difference is not ruled out"
    is_shown = result.pvalue <= level_of(result)
    judged = _judge(result, what, stated, is_shown=is_shown, open_end=end)
    return _sentence(f"{describe_groups(result)}{judged}")


def describe_groups(result: OmnibusTestResult) -> str:
    """Return how far groups are apart, and the names of the two that are furthest."""
    metric = format_metric(result.metric)
    among = f"{_within(result)}the {len(result.groups)} groups"
    ends = furthest_apart(result)
    if ends is None:
        return f"{among} differ in {metric}"
    (low, least), (high, most) = ends
    unit = unit_of(result.metric, result.counts.values())
    weighted = any("weight" in one for one in result.counts.values())
    return (
        f"{among} have {'weighted ' if weighted else ''}{_pluralize(metric)} from "
        f"{unit.value(least)} ({low}) to {unit.value(most)} ({high})"
        f"{', not standardized over strata' if result.n_strata > 1 else ''}"
    )


def furthest_apart(
    result: OmnibusTestResult,
) -> tuple[tuple[str, float], tuple[str, float]] | None:
    """Return the groups with the lowest and the highest value; None for a joint metric."""
    values = {group: one for group, one in result.values.items() if isinstance(one, (int, float))}
    if len(values) < len(result.groups):
        return None

    def name(group: Hashable) -> str:
        return _isolate(name_group(result.attribute, group))

    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return (name(low), values[low]), (name(high), values[high])


def _pluralize(metric: str) -> str:
    return f"{metric}s" if metric.endswith(("rate", "score", "value")) else f"values of {metric}"


def answer_correlation(method: str, correlation: float, result: Any) -> str:
    """Return a correlation, and whether chance explains it."""
    names = {"pearson": "Pearson's", "spearman": "Spearman's"}
    r = format_number(correlation, signed=True)
    rest = format_interval(result.confidence_interval, signed=True)
    return _sentence(
        f"{names[method]} correlation of the {result.n:,} rows is {r}"
        + _judge(
            result,
            "it",
            _state_p(result.pvalue, result.pvalue, result),
            is_shown=result.pvalue <= level_of(result),
            open_end=f"; correlations from {rest} are not ruled out",
        )
    )


# Margins.


def answer_margin(result: EquivalenceTestResult) -> str:
    """Return whether a gap or ratio is shown to lie within its margin."""
    test = result.permutation
    unit = _unit_of(test)
    is_gap = result.scale == "difference"
    is_change = hasattr(test, "gap_old")
    names = [_isolate(name) for name in test.names]
    if is_change:
        head, what = f"With the change, {describe_change(test, test.names)}", "the change"  # type: ignore[arg-type]
    elif is_gap:
        head, what = describe_gap(test, test.names), name_of_gap(*test.names)
    else:
        values = _join_values(unit, (test.values[group] for group in test.groups))
        metric, ratio = format_metric(test.metric), format_number(result.estimate)
        head = f"{own(names[0], metric)} is {ratio} times {_possessive(names[1])} ({values})"
        if not _is_word(names[1]):
            head = f"{own(names[0], metric)} is {ratio} times that of {names[1]} ({values})"
        what = "the ratio"

    def write(limits: tuple[float, float]) -> str:
        return unit.interval(limits) if is_gap else format_interval(limits)

    low, high = result.bounds
    ends = f"between {write((low, high)).replace(' to ', ' and ')}"
    if is_gap and low == -high:
        ends = f"within ±{unit.size(high)}"
    if result.lower is None or result.upper is None:
        bound = high if result.lower is None else low
        one = unit.signed(bound) if is_gap else format_number(bound)
        ends = f"{'below' if result.lower is None else 'above'} {one}"
    stated = _state_p(result.pvalue, result.pvalue, None)
    if _has_clusters(test):
        stated += ", by clusters"
    if result.holds_at(level_of(result)):
        return _sentence(f"{head}; {what} is shown to lie {ends} ({stated})")
    claim = "equivalence" if result.lower and result.upper else "non-inferiority"
    interval = write(result.confidence_interval)
    return _sentence(
        f"{head}; {claim} not established: {what} is not shown to lie {ends} ({stated}), and "
        f"values of {interval} are not ruled out"
    )


# Sweeps over thresholds.


def answer_sweep(result: ThresholdSweepResult) -> str:
    """Return at how many thresholds a gap is larger than chance explains, for each metric."""
    return " ".join(answer_curve(result, curve) for curve in result.curves.values())


def answer_curve(
    result: ThresholdSweepResult, curve: MetricSweep, names: Names | None = None
) -> str:
    """Return at how many thresholds the gap of one metric is larger than chance explains."""
    gap = name_of_gap(*(names or result.group_names))
    n = int((curve.adjusted_pvalue <= result.alpha).sum())
    unit, worst = unit_of(curve.metric), curve.largest()
    where = f"{n:,} of {len(result.thresholds):,} thresholds the gap"
    what = f"in {format_metric(curve.metric)}, {gap},"
    head = f"At {where} {what} is larger" if n else f"At no threshold is the gap {what} larger"
    return _sentence(
        f"{head} than chance explains; the largest is "
        f"{unit.signed(float(curve.difference[worst]))} at {result.thresholds[worst]:.4g} "
        f"({state_pvalue(curve.global_pvalue)} for all thresholds together)"
    )


def answer_sweeps(sweeps: Sequence[ThresholdSweepResult]) -> str:
    """Return how many pairs of groups have a gap at some threshold, and the clearest."""
    pairs = [(one, curve) for one in sweeps for curve in one.curves.values()]
    if len(pairs) == 1:
        return answer_curve(*pairs[0])
    found = {id(one) for one, curve in pairs if (curve.adjusted_pvalue <= one.alpha).any()}
    clearest = min(pairs, key=lambda pair: _or_one(pair[1].global_pvalue))
    head = f"{len(found):,} of {format_count(len(sweeps), 'pair')} of groups"
    verb = "has" if len(found) == 1 else "have"
    return (
        f"{head} {verb} a gap that chance does not explain, at some threshold. "
        f"{_CLEAREST[bool(found)]}: {_embed(answer_curve(*clearest))}"
    )


def _or_one(p: float) -> float:
    return 1.0 if math.isnan(p) else p


# Planning.


def answer_power(power: float, n: int, assumed: str) -> str:
    """Return the power of a sample size for a gap that is ``assumed``, in words."""
    level = format_percent(power)
    return f"With {format_count(n, 'row')} the test detects {assumed} with {level} power."


def answer_rows(n: int, power: float, assumed: str) -> str:
    """Return the sample size that a power takes."""
    rows = format_count(n, "row")
    return f"You need {rows} in total for {format_level(power)} power to detect {assumed}."


def answer_detectable(gap: float, n: int, power: float, metric: str) -> str:
    """Return the smallest gap that a sample size detects."""
    rows, level = format_count(n, "row"), format_level(power)
    if math.isinf(gap):
        return f"With {rows} the test detects no gap in {format_metric(metric)} with {level} power."
    gap_text = assume(metric, (gap, 0.0), is_gap=True)
    return f"With {rows} the test detects {gap_text} with {level} power."


def assume(metric: str, values: tuple[float, float], *, is_gap: bool = False) -> str:
    """Return the values of two groups that planning assumes, in words.

    Examples
    --------
    >>> assume("false_negative_rate", (0.1, 0.2))
    'a false negative rate of 10.0 % v 20.0 %'
    >>> assume("mean_absolute_error", (3.0, 0.0), is_gap=True)
    'a gap of 3.000 in mean absolute error'
    """
    name = format_metric(metric)
    if is_gap:
        return f"a gap of {unit_of(metric).size(values[0] - values[1])} in {name}"
    article = "an" if name[0] in "aeiou" else "a"
    return f"{article} {name} of {_join_values(unit_of(metric), values)}"


def answer_simulation(result: Any) -> str:
    """Return the power of samples like the user's own."""
    rows = " and ".join(
        f"{format_count(size, 'row')} of {format_name(group)}"
        for size, group in zip(result.sizes, result.groups, strict=True)
    )
    effect = "the observed gap"
    if result.effect < 1:
        effect = f"{format_percent(result.effect)} of the observed gap"
    metric, level = format_metric(result.metric), format_percent(result.power)
    return f"With {rows} the test detects {effect} in {metric} with {level} power."


# Subgroups.


def answer_subgroups(
    n_found: int,
    n_all: int,
    metric: str,
    clearest: tuple[str, float, float, float, float] | None,
) -> str:
    """Return how many subgroups differ from the rest, and the clearest.

    That has a description, its value, that of all other rows, the gap and an adjusted p-value.
    """
    name = format_metric(metric)
    verb = "differs" if n_all == 1 else "differ"
    head = (
        f"{n_found:,} of {format_count(n_all, 'subgroup')} {verb} from all other rows in {name} by "
        "more than chance explains"
    )
    if clearest is None:
        return f"{head}; real gaps are not ruled out."
    description, value, rest, gap, p = clearest
    unit = unit_of(metric)
    values = _join_values(unit, (value, rest))
    side = "higher" if gap > 0 else "lower"
    stated = state_pvalue(p, "adjusted p")
    return f"{head}. The clearest: {description}, {unit.size(gap)} {side} ({values}; {stated})."


# Audits of selection.


def answer_impact(
    attribute: str,
    names: tuple[object, object],
    rates: tuple[float, float],
    interval: tuple[float, float],
    evidence: Mapping[str, int],
    bound: float,
) -> str:
    """Return how the group selected least stands beside the group selected most.

    ``evidence`` is the number of compared groups by what their intervals say of the bound.
    """
    low, best = (isolate_direction(format_name(one)) for one in names)
    ratio, limit = format_beside(rates[0] / rates[1], bound)
    n, are_equal = sum(evidence.values()), rates[0] == rates[1]
    head = f"{_isolate(attribute)}: "
    if are_equal:
        head += f"all groups have the same selection rate ({format_percent(rates[0])}); "
    else:
        values = " v ".join(map(format_percent, rates))
        head += f"{own(low, 'selection rate')} is {ratio} times that of {best} ({values}); "
    whole = "the lowest interval, " if are_equal else "its interval, "
    whole += " to ".join(format_beside(end, bound)[0] for end in interval)
    if interval[1] < bound:
        found = f"{whole}, lies below {limit}"
    elif interval[0] >= bound:
        found = f"{whole}, does not go below {limit}"
    else:
        found = f"{whole}, leaves open whether the ratio is below {limit}"
    if n == 2:
        return f"{head}{found}."
    counts = [
        f"{number} {'is' if number == 1 else 'are'} {_EVIDENCE[word].format(limit)}"
        for word, number in evidence.items()
    ]
    return f"{head}{found}. Of its {n} groups, {join_words(counts)}."


_EVIDENCE = {
    "below": "shown to be below {}",
    "at least": "shown to be at least {}",
    "undecided": "undecided",
}


# Audits.


def answer_audit(audit: AuditData, name: Callable[[AuditRow], Names] | None = None) -> str:
    """Return how many gaps are real, the largest, and what stays open.

    ``name`` returns the names of a row's groups, if they are not to have their own.
    """
    name = name or _name_row
    changes = f"{answer_changes(audit)} With the old model: " if audit.compares_models else ""
    counts = {one: sum(row.verdict == one for row in audit.rows) for one in _VERDICTS}
    judged = [row for row in audit.rows if row.verdict != "too small"]
    if not judged:
        reason = audit.rows[0].reason if audit.rows else "there is no comparison"
        text = "No comparison could be judged"
        if len(audit.rows) == 1:
            return f"{changes}{text}: {reason.rstrip('.')}."
        return f"{changes}{text}: groups are too small, or metrics have no value in them."
    if len(audit.rows) == 1:
        return changes + answer_row(audit.rows[0], name(audit.rows[0]))
    if len(judged) == 1:
        others = f" {format_count(counts['too small'], 'other')} could not be judged."
        return f"{changes}{answer_row(judged[0], name(judged[0]))}{others}"
    parts = [_count_found(audit, judged, name)]
    if n := counts["equivalent"]:
        parts.append(f"{n:,} {_are(n)} within the margin.")
    if counts["inconclusive"]:
        parts.append(_count_undecided(row for row in judged if row.verdict == "inconclusive"))
    if n := counts["too small"]:
        parts.append(f"{n:,} could not be judged.")
    remarks = [] if counts["disparity"] else describe_joint_findings(audit).values()
    return " ".join([f"{changes}{parts[0]}", *parts[1:], *remarks])


def _name_row(row: AuditRow) -> Names:
    return row.names


def _count_found(
    audit: AuditData, judged: Sequence[AuditRow], name: Callable[[AuditRow], Names]
) -> str:
    """Return how many gaps are real, and the largest of them."""
    found = [row for row in judged if row.verdict == "disparity"]
    is_one = len(found) == 1
    results = (row.result for row in found if row.result is not None)
    claim = f"{_are(len(found))} larger than {explain_by(*results)}"
    if {row.margin is not None for row in found or judged} == {True}:
        claim = f"exceed{'s' if is_one else ''} the margin"
    of = format_count(len(judged), "judged gap")
    if not found:
        return f"None of {of} {claim}."
    rank, row = _choose(found)
    stated = state_pvalue(_p_of_disparity(row), "p" if audit.adjust is None else "adjusted p")
    chosen = "" if is_one else f"; the {rank}"
    gap = _embed(describe_row(row, name(row)))
    return f"{len(found):,} of {of} {claim}{chosen}: {gap}, {stated}."


def _count_undecided(rows: Iterable[AuditRow]) -> str:
    """Return how many gaps are undecided, and what that leaves open."""
    rows = list(rows)
    n, n_margins = len(rows), sum(row.margin is not None for row in rows)
    gaps = {0: "real gaps", n: "gaps beyond the margin"}.get(n_margins, "gaps that matter")
    head = f"{n:,} {_are(n)} undecided: {gaps} are not ruled out"
    if shown := sum(map(is_gap_shown, rows)):
        which = "all of them" if shown == n > 1 else f"{shown:,} of them"
        head += f", and chance does not explain {'this one' if n == 1 else which}"
    return f"{head}."


def is_gap_shown(row: AuditRow) -> bool:
    """Whether a gap is larger than chance explains, also one that may be within its margin."""
    interval = row.adjusted_interval
    return interval is not None and not interval[0] <= 0 <= interval[1]


_VERDICTS = ("disparity", "equivalent", "inconclusive", "too small")


def _choose(rows: Sequence[AuditRow]) -> tuple[str, AuditRow]:
    """Return "largest" and that row if gaps have one unit, "clearest" and that row if not."""
    are_shares = {row.result is not None and _unit_of(row.result).is_share for row in rows}
    if are_shares == {True} or len({row.metric for row in rows}) == 1:
        return "largest", max(rows, key=lambda row: abs(row.difference or 0.0))
    return "clearest", min(rows, key=lambda row: _p_of_disparity(row) or 0.0)


def _p_of_disparity(row: AuditRow) -> float | None:
    return row.adjusted_pvalue if row.margin is None else row.adjusted_exceedance_pvalue


def describe_joint_findings(audit: AuditData) -> dict[tuple[str, str], str]:
    """Return where all groups together differ, and no comparison of two shows it.

    The sentences are by attribute and metric.
    """
    found: dict[tuple[str, str], str] = {}
    shown = {
        (row.attribute, row.metric)
        for row in audit.rows
        if row.adjusted_pvalue is not None and row.adjusted_pvalue <= audit.alpha
    }
    for one in audit.omnibus:
        result = one.result
        if result is None or result.pvalue > audit.alpha or (one.attribute, one.metric) in shown:
            continue
        ends = furthest_apart(result)
        text = (
            f"All groups of {format_name(one.attribute)} together differ in "
            f"{format_metric(one.metric)} by more than chance explains "
            f"({state_pvalue(result.pvalue)}, not adjusted), but no comparison of two does"
        )
        if ends is not None:
            unit = unit_of(result.metric, result.counts.values())
            low, high = (f"{name} ({unit.value(value)})" for name, value in ends)
            text += f"; furthest apart are {high} and {low}"
        found[one.attribute, one.metric] = f"{text}."
    return found


def answer_changes(audit: AuditData) -> str:
    """Return how many gaps a new model narrows and widens."""
    changes = [row.change for row in audit.rows if row.change is not None]
    if len(changes) == 1:
        return answer_gap_change(changes[0])
    counts: dict[str, int] = {}
    for one in changes:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    parts = [f"{counts[one]:,} {verb}" for one, verb in _CHANGED.items() if one in counts]
    return f"With the new model, of {format_count(len(changes), 'gap')} {join_words(parts)}."


_CHANGED = {  # the verdicts on changes, as verbs
    "widened": "widened",
    "narrowed": "narrowed",
    "closed": "closed",
    "changed": "changed (whether they are smaller or larger is undecided)",
    "unchanged within margin": "changed by less than the margin",
    "inconclusive": "may or may not have changed",
    "too small": "could not be judged",
}
