"""Every option of the command line: what it is called, what it says, which argument it is.

A command lists the options that it takes by their keys. A new option is one entry of the table, and
its key in the commands that take it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

import click
from click.shell_completion import CompletionItem

from fairperm.cli import config, values
from fairperm.data.arguments import CLASS_METRICS, DEFAULT_METRICS
from fairperm.errors import shown


class Format(StrEnum):
    """Format of a file."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    jsonl = "jsonl"
    duckdb = "duckdb"
    xlsx = "xlsx"
    inspect = "inspect"


class _Number(click.ParamType):  # type: ignore[type-arg]
    """A number, of which an error says what it must be."""

    name = "number"

    def __init__(self, make: type[int] | type[float], rule: str) -> None:
        self.make, self.rule = make, rule

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number that a text is."""
        try:
            return self.make(value)
        except ValueError:
            self.fail(f"must be {self.rule}; got {shown(value)}", param, ctx)


class _Text(click.ParamType):  # type: ignore[type-arg]
    """A text; ``completions`` returns what the shell may complete it to."""

    name = "text"

    def __init__(self, completions: Callable[[str], list[CompletionItem]] | None = None) -> None:
        self.completions = completions

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text; of a count that may be "auto", too, the integer."""
        is_count = isinstance(param, click.Option) and param.metavar == "N|auto"
        return int(value) if is_count and str(value).isdigit() else value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return what a beginning may be completed to."""
        return self.completions(incomplete) if self.completions else []


def _complete_file(beginning: str) -> list[CompletionItem]:
    return [CompletionItem(beginning, type="file")]  # the shell knows the files


def _complete_metric(beginning: str) -> list[CompletionItem]:
    from fairperm.metrics.registry import metric_names

    return [CompletionItem(one) for one in metric_names() if one.startswith(beginning)]


_INTEGER, _NUMBER = _Number(int, "a whole number"), _Number(float, "a number")
ARGUMENTS = ("files", "file", "which")  # which have no name on the command line
_KINDS = {  # by what stands for the value in the help
    **dict.fromkeys(("N", "ROWS", "LINES"), _INTEGER),
    **dict.fromkeys(("NUMBER", "LEVEL", "SHARE", "LOW HIGH"), _NUMBER),
    **dict.fromkeys(("FILE", "PATH"), _Text(_complete_file)),
    "METRIC": _Text(_complete_metric),
}


@dataclass(frozen=True, slots=True)
class Option:
    """An option of one command or of several.

    Attributes
    ----------
    topic
        The heading that it has in the help.
    key
        Its name, and after an @ what tells it from others of this name.
    value
        What stands for the value in the help, and says of which kind it is; "…" where the option
        may be repeated. A switch has none.
    text
        What the help says of it.
    argument
        The argument of the library that it sets, if that has another name; None if it sets none.
    convert
        Makes the argument of the value, all values of the command, and the data.
    """

    topic: str
    key: str
    value: str
    text: str
    argument: str | None = ""
    default: Any = None
    choices: tuple[str, ...] = ()
    convert: Callable[[Any, Mapping[str, Any], Any], Any] | None = None

    @property
    def name(self) -> str:
        """Its name in Python."""
        return self.key.partition("@")[0]

    @property
    def spelt(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.rstrip('_').replace('_', '-')}"

    @property
    def full_text(self) -> str:
        """What the help says of it, with its default."""
        says_it = "efault" in self.text or self.default in (None, False, 0)
        return self.text if says_it else f"{self.text} Default: {self.default}."

    @property
    def short(self) -> tuple[str, ...]:
        """Its name of one letter, if it has one."""
        return ("-q",) if self.name == "quiet" else ()

    def make_parameter(self) -> click.Parameter:
        """Return it for the parser, where it may be called by its argument's name, too."""
        metavar = self.value.removesuffix("…")
        kind = click.Choice(self.choices) if self.choices else _KINDS.get(metavar, _Text())
        if self.name in ARGUMENTS:
            n_values = -1 if self.value.endswith("…") else 1
            is_needed = n_values == 1 and not self.value.startswith("[")
            return click.Argument(
                [self.name], nargs=n_values, type=kind, metavar=metavar, required=is_needed
            )
        of_python = f"--{self.argument.replace('_', '-')}" if self.argument else self.spelt
        return click.Option(
            [self.name, *dict.fromkeys((self.spelt, of_python)), *self.short],
            help=self.text,
            metavar=metavar or None,
            type=kind if self.value else None,
            is_flag=not self.value,
            multiple=self.value.endswith("…"),
            nargs=len(metavar.split()) or 1,
            default=False if not self.value else self.default,
            is_eager=self.name == "config",
            callback=config.read_defaults if self.name == "config" else None,
        )


# An entry has the option's key, what stands for its value, the argument that it sets if that has
# another name (- if it sets none), its default, and what the help says of it.
_TABLE = f"""
# Columns
label COLUMN > y_true: True labels: 0 and 1, two values with --pos-label, classes, or numbers.
prediction COLUMN > y_pred: Predictions of the model.
score COLUMN > y_score: Scores of the model.
score@monitor COLUMN > y_score: Scores of the model.
score@lists COLUMN: Scores, by which a list is sorted.
selected COLUMN: Who was selected: 0 and 1, or two values with --pos-label.
score@selection COLUMN: Scores instead; --threshold says who is selected.
class_score CLASS=COLUMN… > -: Scores of a class, one column for each class of --label; for
    roc_auc_ovr and 'roc_auc[CLASS]'.
prediction_new COLUMN > y_pred_new: Predictions of the new model.
score_new COLUMN > y_score_new: Scores of the new model.
threshold NUMBER: Scores from here on are positive predictions. Default for scores from 0 to 1: 0.5.
threshold_new NUMBER: Threshold of the new model's scores. Default: --threshold.
threshold@selection median|NUMBER = median: Scores above it count as selected: the median of all, or
    a number.
threshold@flip NUMBER: Predictions are scores: from here on positive.
group COLUMN… > sensitive_features: Protected attribute. sex,race is one attribute: the combinations
    of both columns.
group@one COLUMN > sensitive_features: Protected attribute.
group@flip COLUMN: The attribute that --after has another value of, in both files. Without it, the
    values are called before and after.
group@columns COLUMN… > sensitive_features: Protected attribute.
group_probability NAME=COLUMNS > group_probabilities: Protected attribute of unknown groups:
    race=black,white for two columns of probabilities that add up to 1.
proxy COLUMN: With --group-probability: cells of equal probabilities, for bounds on the gap.
pair FIRST SECOND > groups: The two groups to compare, if there are more.
feature COLUMN… > features: Column that describes subgroups.
pos_label VALUE: Label of the positive class.
pos_label@selection VALUE: Value of --selected that means selected.
unknown TEXT…: Group that means not known, as missing and blank ones do. Default: unknown, not
    disclosed, prefer not to say, declined to answer and the like.
control COLUMN… > control_features: Strata: compare rows only within them.
stratum_weights VALUE=N…: Weight of a stratum of --control, one for each; VALUE,VALUE=N with several
    columns. Default: by size.
cluster COLUMN: Rows that belong together, such as those of one person.
split_clusters: Split clusters that span several groups.
matched COLUMN: Matched sets, such as pairs: groups are exchanged only inside a set.
names COLUMN: Names that stand for the groups in all sets: whole names are exchanged.
weight COLUMN > sample_weight: Weights of the rows.
count COLUMN: In a table of counts, how many equal rows a row stands for.
applicants COLUMN: In a summary with a row for each group, how many applied; --selected is then how
    many were selected.
missing error|drop|group = error: Missing values: refuse them, drop their rows, or make those in
    --group a group.
missing@flip error|drop = error: Missing decisions and items that one of the files lacks: refuse
    them, or leave them out.
score_bins N: Count scores in this many bins, for files larger than memory; for roc_auc,
    brier_score, log_loss and means of scores. Default: read every score; of more than 1,048,576
    distinct rows use 131,072 bins if the error is negligible.
period COLUMN: Periods, sites or versions.
periods VALUE…: Period to compare, in order. Default: all, sorted; text must sort by time.
relevance COLUMN: Relevance of an item: 0 or 1; for ndcg and exposure_per_relevance any number from
    0 on. Other metrics of items need none.
rank COLUMN: Positions in the list, from 1, in place of scores.
query COLUMN: Queries, each of which has one list.
# Metrics
metric METRIC… > metrics: Metric; `fairperm metrics` lists them. Default:
    {", ".join(DEFAULT_METRICS)}; without --label {DEFAULT_METRICS[0]};
    with more than two classes {", ".join(CLASS_METRICS)}.
metric@sweep METRIC…: Metric; `fairperm metrics` lists them. Default: {", ".join(DEFAULT_METRICS)}.
metric@periods METRIC… > metrics: Metric; `fairperm metrics` lists them. Default:
    {", ".join(DEFAULT_METRICS)}; without --label {DEFAULT_METRICS[0]}.
metric@monitor METRIC… > metrics: A rate with one denominator, such as fpr, or a mean of values with
    --bounds.
bounds LOW HIGH: Lowest and highest possible value of a row, for means.
metric@one METRIC: Metric; `fairperm metrics` lists them.
distance NAME… > distances: Distance between the distributions of --score or --prediction: ks,
    wasserstein, total_variation …; ks_given_label compares rows of equal label.
ranking NAME… > rankings: Metric of ranked lists, as in `fairperm ranking`; ndcg@5 for the top 5.
    --label is the relevance of an item, --score sorts them. Needs --query.
metric@lists NAME = ndcg: Quality of a list: ndcg, precision, recall, average_precision,
    reciprocal_rank, hit_rate. Exposure of items: exposure, exposure_per_relevance, top_k_share,
    skew. Order of all groups at once: ndkl.
k N = 10: Items from the top of a list that count.
thresholds N|LIST = 101: Number of thresholds; scores for every score; or numbers separated by
    commas.
# Comparisons
compare pairs|reference|rest: Compare every two groups, each with the reference, or each with all
    others. Default: pairs; with --reference, reference.
reference [COLUMN=]GROUP…: Group to compare the others with; of combinations sex,race=F,white. best
    or worst: the one with that value of each metric. Default: the largest.
reference@one GROUP: Group to compare the others with. Default: the largest.
known_group GROUP… > known_groups: Group that will be monitored. Default: all groups of the first
    batch.
reference@monitor GROUP: Group to compare the others with. Default: every two groups are compared.
intersections: Compare the combinations of all --group columns, too.
intersections@selection yes|no = yes: Whether to compare the combinations of all --group columns,
    too.
minimum_share SHARE = 0.02: Groups with a smaller share of the applicants have no ratio.
four_fifths NUMBER = 0.8: The bound of impact ratios.
source TEXT: Where the data are from, for the tables.
from_ DATE > start: First day of the data, for the tables.
to DATE > end: Last day of the data, for the tables.
why_excluded TEXT: Why small groups are left out, for the tables.
margin [METRIC=]NUMBER…: Largest gap that does not matter.
ratio [METRIC=]NUMBER…: Smallest acceptable ratio of two groups' values; 0.8 is the four-fifths
    rule.
margin@monitor NUMBER = 0.0: Largest gap that does not matter.
margin@one NUMBER > -: Test whether the gap is smaller than this.
ratio@one NUMBER > -: Test whether the ratio of the groups' values is larger than this, either way;
    0.8 is the four-fifths rule.
better higher|lower > -: With --margin or --ratio, test only whether the first group is not worse.
min_group_size ROWS: Groups with fewer rows get no verdict. Default: 50; of matched sets, 20.
min_group_size@periods ROWS = 50: Groups with fewer rows in a period get no verdict.
group_size_by metric|rows = metric: Whether --min-group-size counts the rows in the metric's
    denominator, or all.
against previous|first = previous: Period to compare each one with.
# Search
max_depth N = 3: Most conditions of a subgroup.
min_rows ROWS = 30: Fewest rows in the metric's denominator, of a subgroup and of the rest.
bands N = 4: Most quantile bands of a column of numbers.
confirm SHARE: Leave this share of the rows out of the search, and test what was found in them.
# Test
adjust holm|bh|by|none = holm: Adjustment for multiple comparisons.
adjust@search maxt|holm|bh|by = maxt: Adjustment for multiple comparisons.
family audit|attribute = audit: Adjust all comparisons together, or those of each --group column.
alpha LEVEL = 0.05: Level of the tests.
confidence_level LEVEL = 0.95: Level of the intervals.
alternative WORD = two-sided: Alternative: two-sided, symmetric, greater or less.
scheme WORD = auto: What is exchanged: auto, pooled, within_label, denominator or unconditional.
variance WORD = auto: Standard error of the gap: auto, score, wald, delta, bootstrap, fast_bootstrap
    or none.
proxy_assumption WORD = outcome_given_group: With --group-probability: within a group outcomes do
    not depend on the proxy (outcome_given_group), or with equal proxies not on the group
    (group_given_proxy).
resamples N|auto > n_resamples = auto: Random permutations; auto: until 20 are as extreme as the
    data, at most 9999 (more in audits of many hypotheses).
resamples@search N > n_resamples = 999: Random permutations.
resamples@sweep N > n_resamples = 9999: Random permutations.
bootstraps N > n_bootstrap = 500: Samples for bootstrap variances.
seed N > rng: The same seed gives the same numbers.
alpha@monitor LEVEL = 0.05: Probability of any false alarm, ever, over all metrics and groups.
jobs N > n_jobs: Threads; -1 for all cores.
# Assumptions
metric@power METRIC: A rate, or roc_auc.
first NUMBER: Metric of the first group.
second NUMBER: Metric of the second group.
n ROWS: Rows of both groups together.
power SHARE = 0.8: Probability of detecting the gap.
share SHARE: Share of rows in the first group. Default: 0.5.
base_rate SHARE… > base_rates: Share of positive labels; twice if the groups differ.
# Files
files FILE… > data: CSV, TSV, Excel, Parquet, JSON lines, a DuckDB database, an Inspect log; a
    glob; or - for standard input.
file FILE: JSON of `fairperm audit` or `fairperm compare`; - for standard input.
file@app [FILE]: Data to begin with: CSV, Excel, Parquet or JSON lines.
no_open: Open no browser; the address is printed.
port N = 0: Port of the page. Default: any that is free.
which [METRIC]…: Names of metrics. Default: all.
new FILE: File of the new model; by default the same columns are read.
before FILE: Decisions on items.
after FILE: Decisions on the same items with another value of the attribute.
id COLUMN…: Column that names an item; joins two files.
table NAME: Table of a database, or sheet of an Excel file.
sql SELECT: Compute the columns; the files are the table data.
where CONDITION: Keep these rows, in SQL: "age >= 18".
format_ FORMAT: Format of the files: {", ".join(Format)}.
delimiter CHARACTER: Separator of the columns of a CSV file.
decimal MARK = .: Decimal mark in a CSV file: . (the default) or ,
encoding NAME: Encoding of a CSV file: utf-8, latin-1 …
skip LINES = 0: Lines above the header, such as titles.
na TEXT…: Text that means a missing value in a CSV file. Default: empty, NA, N/A, NaN, null, None.
# State
state PATH: File that keeps what is known between batches; it has no rows. The first batch makes it.
batch ID: Name of the batch, which must be after the last one: a whole number, or text such as
    2026-03-01. The last one again is not counted again.
# Report
report PATH: Write a report: one HTML file that works offline.
report@demo PATH = fairperm-demo.html: Path of the report.
short: Leave the table of all comparisons and the method out.
title TEXT: Heading of the report.
author NAME: Who wrote the report.
note TEXT: Remark at the beginning of the report.
positive_means TEXT: What a positive label means, to complete "people who …": "repaid the loan".
negative_means TEXT: What any other label means, in the same way: "did not repay the loan".
rename COLUMN:VALUE=NAME…: Name of a group in the report: sex:F=women.
# Output
json PATH: Write the whole result as JSON; - prints it.
json@metrics PATH: Write the list as JSON; - prints it.
csv PATH: Write the table as CSV; - prints it.
raw_names: Write names to CSV unchanged, even if a spreadsheet would run them as formulas.
xlsx PATH: Write an Excel workbook, with a sheet for each table.
markdown PATH: Write the table as Markdown for a pull request; - prints it.
junit PATH: Write what --fail-on decides as JUnit's XML, for CI systems.
fail_on VERDICT…: Exit with code 1 for disparity, inconclusive, too-small, ratio (--ratio is shown
    not to be met) or ratio-estimate (the estimate does not meet it).
fail_on@changes VERDICT…: Exit with code 1 for widened, inconclusive (or changed: its size is
    undecided) or too-small.
fail_on@periods VERDICT…: Exit with code 1 for widened (a gap), worse (a group), changed (any change
    that is shown), inconclusive or too-small.
fail_on@selection VERDICT…: Exit with code 1 for below (a ratio is shown to be below the bound) or
    estimate (a ratio is below it, shown or not).
fail_on@monitor VERDICT…: Exit with code 1 for disparity (an alarm) or inconclusive.
show_small: Show each comparison that is too small for a verdict, too.
quiet: Print no table and no progress.
config PATH: Read options from this file. Default: fairperm.toml, or [tool.fairperm] in
    pyproject.toml.
debug: Show the traceback of an error.
"""
_CHOICES: dict[str, tuple[str, ...]] = {
    "missing@flip": ("error", "drop"),
    "better": ("higher", "lower"),
    "format_": tuple(Format),
    "fail_on": ("disparity", "inconclusive", "too-small", "ratio", "ratio-estimate"),
    "fail_on@changes": ("widened", "inconclusive", "too-small"),
    "fail_on@periods": ("widened", "worse", "changed", "inconclusive", "too-small"),
    "fail_on@selection": ("below", "estimate"),
    "fail_on@monitor": ("disparity", "inconclusive"),
}
_AS_LISTS = (
    *("group@columns", "control", "metric", "metric@periods", "metric@monitor", "distance"),
    *("ranking", "known_group", "unknown"),
)
_CONVERTERS: dict[str, Callable[[Any, Mapping[str, Any], Any], Any]] = {
    **dict.fromkeys(_AS_LISTS, values.as_list),
    **dict.fromkeys(("adjust", "variance"), values.as_word),
    "score": values.find_score,
    "prediction_new": lambda value, given, data: data.find_new(value),
    "score_new": lambda value, given, data: data.find_new(value),
    "threshold@selection": values.parse_cut,
    "group": values.find_groups,
    "group_probability": values.find_probabilities,
    "pair": values.find_pair,
    "feature": lambda value, given, data: value,
    "pos_label": values.find_pos_label,
    "pos_label@selection": lambda value, given, data: data.find_value(given["selected"], value),
    "stratum_weights": lambda value, given, data: data.find_stratum_weights(
        given["control"], value
    ),
    "periods": values.find_periods,
    "thresholds": values.parse_thresholds,
    "compare": values.find_pairing,
    "reference": values.find_references,
    "reference@one": lambda value, given, data: data.find_value(given["group"], value),
    "intersections@selection": values.as_switch,
    "margin": values.by_name("--margin"),
    "ratio": values.by_name("--ratio"),
}


def _read_table() -> Iterator[Option]:
    """Yield every option of the table."""
    topic = ""
    for entry in re.split(r"\n(?! )", _TABLE.strip()):
        line = " ".join(entry.split())
        if line.startswith("# "):
            topic = line.removeprefix("# ")
            continue
        head, _, text = line.partition(": ")
        head, _, default = head.partition(" = ")
        head, _, argument = head.partition(" > ")
        key, _, value = head.partition(" ")
        kind = _KINDS.get(value)
        yield Option(
            topic,
            key,
            value,
            text,
            None if argument == "-" else argument,
            kind.make(default) if default and isinstance(kind, _Number) else default or None,
            _CHOICES.get(key, ()),
            _CONVERTERS.get(key),
        )


OPTIONS = {one.key: one for one in _read_table()}
TOPICS = {name: [*options] for name, options in groupby(OPTIONS.values(), lambda one: one.topic)}
# topics; options of the others are arguments of the library
_READING = "table sql where format_ delimiter decimal encoding skip na"
_NO_ARGUMENTS = ("Assumptions", "Files", "State", "Report", "Output")


def find_options(keys: str) -> list[Option]:
    """Return the options with these keys, which spaces separate; READING stands for several."""
    return [OPTIONS[key] for key in keys.replace("READING", _READING).split()]


def as_arguments(options: Iterable[Option], given: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """Return the arguments of the library that the options of a command set."""
    shared = {"data": data.data, "progress": False if given["quiet"] else None}
    return shared | convert_values(options, given, data)


def convert_values(
    options: Iterable[Option], given: Mapping[str, Any], data: Any
) -> dict[str, Any]:
    """Return the arguments that these options set, without those that every command has."""
    found: dict[str, Any] = {}
    for one in options:
        if one.argument is not None and one.topic not in _NO_ARGUMENTS:
            value = given[one.name]
            made = value if one.convert is None else one.convert(value, given, data)
            found[one.argument or one.name] = made
    return found


def collect_settings(options: Iterable[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that decide the numbers, ready for JSON."""
    return {
        one.name: [*value] if isinstance(value, tuple) else value
        for one in options
        if one.topic not in ("Report", "Output")
        and one.name != "files"
        and (value := given[one.name]) not in (None, ())
    }
