"""Every option of the command line: what it is called, what it says, which argument it is.

A command lists the options that it takes by their keys in ``OPTIONS``. A new option is one entry
here, and its key in the commands that take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
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

    @property
    def topic(self) -> str:
        """The heading that it has in the help."""
        return next(topic for topic, options in TOPICS.items() if self in options)

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


# Those of the first topics are arguments of the library.
TOPICS: dict[str, tuple[Option, ...]] = {
    "Columns": (
        Option(
            "label",
            "COLUMN",
            "True labels: 0 and 1, two values with --pos-label, classes, or numbers.",
            "y_true",
        ),
        Option("prediction", "COLUMN", "Predictions of the model.", "y_pred"),
        Option("score", "COLUMN", "Scores of the model.", "y_score", convert=values.find_score),
        Option("score@monitor", "COLUMN", "Scores of the model.", "y_score"),
        Option("score@lists", "COLUMN", "Scores, by which a list is sorted."),
        Option(
            "selected",
            "COLUMN",
            "Who was selected: 0 and 1, or two values with --pos-label.",
        ),
        Option("score@selection", "COLUMN", "Scores instead; --threshold says who is selected."),
        Option(
            "class_score",
            "CLASS=COLUMN…",
            "Scores of a class, one column for each class of --label; for roc_auc_ovr and "
            "'roc_auc[CLASS]'.",
            None,
        ),
        Option(
            "prediction_new",
            "COLUMN",
            "Predictions of the new model.",
            "y_pred_new",
            convert=lambda value, given, data: data.find_new(value),
        ),
        Option(
            "score_new",
            "COLUMN",
            "Scores of the new model.",
            "y_score_new",
            convert=lambda value, given, data: data.find_new(value),
        ),
        Option(
            "threshold",
            "NUMBER",
            "Scores from here on are positive predictions. Default for scores from 0 to 1: 0.5.",
        ),
        Option(
            "threshold_new", "NUMBER", "Threshold of the new model's scores. Default: --threshold."
        ),
        Option(
            "threshold@selection",
            "median|NUMBER",
            "Scores above it count as selected: the median of all, or a number.",
            default="median",
            convert=values.parse_cut,
        ),
        Option("threshold@flip", "NUMBER", "Predictions are scores: from here on positive."),
        Option(
            "group",
            "COLUMN…",
            "Protected attribute. sex,race is one attribute: the combinations of both columns.",
            "sensitive_features",
            convert=values.find_groups,
        ),
        Option("group@one", "COLUMN", "Protected attribute.", "sensitive_features"),
        Option(
            "group@flip",
            "COLUMN",
            "The attribute that --after has another value of, in both files. Without it, the "
            "values are called before and after.",
        ),
        Option(
            "group@columns",
            "COLUMN…",
            "Protected attribute.",
            "sensitive_features",
            convert=values.as_list,
        ),
        Option(
            "pair",
            "FIRST SECOND",
            "The two groups to compare, if there are more.",
            "groups",
            convert=values.find_pair,
        ),
        Option(
            "feature",
            "COLUMN…",
            "Column that describes subgroups.",
            "features",
            convert=lambda value, given, data: value,
        ),
        Option("pos_label", "VALUE", "Label of the positive class.", convert=values.find_pos_label),
        Option(
            "pos_label@selection",
            "VALUE",
            "Value of --selected that means selected.",
            convert=lambda value, given, data: data.find_value(given["selected"], value),
        ),
        Option(
            "unknown",
            "TEXT…",
            "Group that means not known, as missing and blank ones do. Default: unknown, not "
            "disclosed, prefer not to say, declined to answer and the like.",
            convert=lambda value, given, data: [*value] or None,
        ),
        Option(
            "control",
            "COLUMN…",
            "Strata: compare rows only within them.",
            "control_features",
            convert=values.as_list,
        ),
        Option(
            "stratum_weights",
            "VALUE=N…",
            "Weight of a stratum of --control, one for each; VALUE,VALUE=N with several columns. "
            "Default: by size.",
            convert=lambda value, given, data: data.find_stratum_weights(given["control"], value),
        ),
        Option("cluster", "COLUMN", "Rows that belong together, such as those of one person."),
        Option("split_clusters", "", "Split clusters that span several groups.", default=False),
        Option(
            "matched",
            "COLUMN",
            "Matched sets, such as pairs: groups are exchanged only inside a set.",
        ),
        Option(
            "names",
            "COLUMN",
            "Names that stand for the groups in all sets: whole names are exchanged.",
        ),
        Option("weight", "COLUMN", "Weights of the rows.", "sample_weight"),
        Option("count", "COLUMN", "In a table of counts, how many equal rows a row stands for."),
        Option(
            "applicants",
            "COLUMN",
            "In a summary with a row for each group, how many applied; --selected is then how many "
            "were selected.",
        ),
        Option(
            "missing",
            "error|drop|group",
            "Missing values: refuse them, drop their rows, or make those in --group a group.",
            default="error",
        ),
        Option(
            "missing@flip",
            "error|drop",
            "Missing decisions and items that one of the files lacks: refuse them, or leave them "
            "out.",
            default="error",
            choices=("error", "drop"),
        ),
        Option(
            "score_bins",
            "N",
            "Count scores in this many bins, for files larger than memory; for roc_auc, "
            "brier_score, log_loss and means of scores. Default: read every score; of more than "
            "1,048,576 distinct rows use 131,072 bins if the error is negligible.",
        ),
        Option("period", "COLUMN", "Periods, sites or versions."),
        Option(
            "periods",
            "VALUE…",
            "Period to compare, in order. Default: all, sorted; text must sort by time.",
            convert=values.find_periods,
        ),
        Option(
            "relevance",
            "COLUMN",
            "Relevance of an item: 0 or 1; for ndcg and exposure_per_relevance any number from 0 "
            "on. Other metrics of items need none.",
        ),
        Option("rank", "COLUMN", "Positions in the list, from 1, in place of scores."),
        Option("query", "COLUMN", "Queries, each of which has one list."),
    ),
    "Metrics": (
        Option(
            "metric",
            "METRIC…",
            f"Metric; `fairperm metrics` lists them. Default: {', '.join(DEFAULT_METRICS)}; "
            f"without --label {DEFAULT_METRICS[0]}; with more than two classes "
            f"{', '.join(CLASS_METRICS)}.",
            "metrics",
            convert=values.as_list,
        ),
        Option(
            "metric@sweep",
            "METRIC…",
            f"Metric; `fairperm metrics` lists them. Default: {', '.join(DEFAULT_METRICS)}.",
        ),
        Option(
            "metric@periods",
            "METRIC…",
            f"Metric; `fairperm metrics` lists them. Default: {', '.join(DEFAULT_METRICS)}; "
            f"without --label {DEFAULT_METRICS[0]}.",
            "metrics",
            convert=values.as_list,
        ),
        Option(
            "metric@monitor",
            "METRIC…",
            "A rate with one denominator, such as fpr, or a mean of values with --bounds.",
            "metrics",
            convert=values.as_list,
        ),
        Option("bounds", "LOW HIGH", "Lowest and highest possible value of a row, for means."),
        Option("metric@one", "METRIC", "Metric; `fairperm metrics` lists them."),
        Option(
            "distance",
            "NAME…",
            "Distance between the distributions of --score or --prediction: ks, wasserstein, "
            "total_variation …; ks_given_label compares rows of equal label.",
            "distances",
            convert=values.as_list,
        ),
        Option(
            "ranking",
            "NAME…",
            "Metric of ranked lists, as in `fairperm ranking`; ndcg@5 for the top 5. --label is "
            "the relevance of an item, --score sorts them. Needs --query.",
            "rankings",
            convert=values.as_list,
        ),
        Option(
            "metric@lists",
            "NAME",
            "Quality of a list: ndcg, precision, recall, average_precision, reciprocal_rank, "
            "hit_rate. Exposure of items: exposure, exposure_per_relevance, top_k_share, skew. "
            "Order of all groups at once: ndkl.",
            default="ndcg",
        ),
        Option("k", "N", "Items from the top of a list that count.", default=10),
        Option(
            "thresholds",
            "N|LIST",
            "Number of thresholds; scores for every score; or numbers separated by commas.",
            default="101",
            convert=values.parse_thresholds,
        ),
    ),
    "Comparisons": (
        Option(
            "compare",
            "pairs|reference|rest",
            "Compare every two groups, each with the reference, or each with all others. Default: "
            "pairs; with --reference, reference.",
            convert=values.find_pairing,
        ),
        Option(
            "reference",
            "[COLUMN=]GROUP…",
            "Group to compare the others with; of combinations sex,race=F,white. best or worst: "
            "the one with that value of each metric. Default: the largest.",
            convert=values.find_references,
        ),
        Option(
            "reference@one",
            "GROUP",
            "Group to compare the others with. Default: the largest.",
            convert=lambda value, given, data: data.find_value(given["group"], value),
        ),
        Option(
            "known_group",
            "GROUP…",
            "Group that will be monitored. Default: all groups of the first batch.",
            "known_groups",
            convert=values.as_list,
        ),
        Option(
            "reference@monitor",
            "GROUP",
            "Group to compare the others with. Default: every two groups are compared.",
        ),
        Option(
            "intersections",
            "",
            "Compare the combinations of all --group columns, too.",
            default=False,
        ),
        Option(
            "intersections@selection",
            "yes|no",
            "Whether to compare the combinations of all --group columns, too.",
            default="yes",
            convert=values.as_switch,
        ),
        Option(
            "minimum_share",
            "SHARE",
            "Groups with a smaller share of the applicants have no ratio.",
            default=0.02,
        ),
        Option("four_fifths", "NUMBER", "The bound of impact ratios.", default=0.8),
        Option("source", "TEXT", "Where the data are from, for the tables."),
        Option("from_", "DATE", "First day of the data, for the tables.", "start"),
        Option("to", "DATE", "Last day of the data, for the tables.", "end"),
        Option("why_excluded", "TEXT", "Why small groups are left out, for the tables."),
        Option(
            "margin",
            "[METRIC=]NUMBER…",
            "Largest gap that does not matter.",
            convert=values.by_name("--margin"),
        ),
        Option(
            "ratio",
            "[METRIC=]NUMBER…",
            "Smallest acceptable ratio of two groups' values; 0.8 is the four-fifths rule.",
            convert=values.by_name("--ratio"),
        ),
        Option("margin@monitor", "NUMBER", "Largest gap that does not matter.", default=0.0),
        Option("margin@one", "NUMBER", "Test whether the gap is smaller than this.", None),
        Option(
            "ratio@one",
            "NUMBER",
            "Test whether the ratio of the groups' values is larger than this, either way; 0.8 is "
            "the four-fifths rule.",
            None,
        ),
        Option(
            "better",
            "higher|lower",
            "With --margin or --ratio, test only whether the first group is not worse.",
            None,
            choices=("higher", "lower"),
        ),
        Option(
            "min_group_size",
            "ROWS",
            "Groups with fewer rows get no verdict. Default: 50; of matched sets, 20.",
        ),
        Option(
            "min_group_size@periods",
            "ROWS",
            "Groups with fewer rows in a period get no verdict.",
            default=50,
        ),
        Option(
            "group_size_by",
            "metric|rows",
            "Whether --min-group-size counts the rows in the metric's denominator, or all.",
            default="metric",
        ),
        Option("against", "previous|first", "Period to compare each one with.", default="previous"),
    ),
    "Search": (
        Option("max_depth", "N", "Most conditions of a subgroup.", default=3),
        Option(
            "min_rows",
            "ROWS",
            "Fewest rows in the metric's denominator, of a subgroup and of the rest.",
            default=30,
        ),
        Option("bands", "N", "Most quantile bands of a column of numbers.", default=4),
        Option(
            "confirm",
            "SHARE",
            "Leave this share of the rows out of the search, and test what was found in them.",
        ),
    ),
    "Test": (
        Option(
            "adjust",
            "holm|bh|by|none",
            "Adjustment for multiple comparisons.",
            default="holm",
            convert=values.as_word,
        ),
        Option(
            "adjust@search",
            "maxt|holm|bh|by",
            "Adjustment for multiple comparisons.",
            default="maxt",
        ),
        Option(
            "family",
            "audit|attribute",
            "Adjust all comparisons together, or those of each --group column.",
            default="audit",
        ),
        Option("alpha", "LEVEL", "Level of the tests.", default=0.05),
        Option("confidence_level", "LEVEL", "Level of the intervals.", default=0.95),
        Option(
            "alternative",
            "WORD",
            "Alternative: two-sided, symmetric, greater or less.",
            default="two-sided",
        ),
        Option(
            "scheme",
            "WORD",
            "What is exchanged: auto, pooled, within_label, denominator or unconditional.",
            default="auto",
        ),
        Option(
            "variance",
            "WORD",
            "Standard error of the gap: auto, score, wald, delta, bootstrap, fast_bootstrap or "
            "none.",
            default="auto",
            convert=values.as_word,
        ),
        Option(
            "resamples",
            "N|auto",
            "Random permutations; auto: until 20 are as extreme as the data, at most 9999 (more in "
            "audits of many hypotheses).",
            "n_resamples",
            default="auto",
        ),
        Option("resamples@search", "N", "Random permutations.", "n_resamples", default=999),
        Option("resamples@sweep", "N", "Random permutations.", "n_resamples", default=9999),
        Option("bootstraps", "N", "Samples for bootstrap variances.", "n_bootstrap", default=500),
        Option("seed", "N", "The same seed gives the same numbers.", "rng"),
        Option(
            "alpha@monitor",
            "LEVEL",
            "Probability of any false alarm, ever, over all metrics and groups.",
            default=0.05,
        ),
        Option("jobs", "N", "Threads; -1 for all cores.", "n_jobs"),
    ),
    "Assumptions": (
        Option("metric@power", "METRIC", "A rate, or roc_auc."),
        Option("first", "NUMBER", "Metric of the first group."),
        Option("second", "NUMBER", "Metric of the second group."),
        Option("n", "ROWS", "Rows of both groups together."),
        Option("power", "SHARE", "Probability of detecting the gap.", default=0.8),
        Option("share", "SHARE", "Share of rows in the first group. Default: 0.5."),
        Option(
            "base_rate",
            "SHARE…",
            "Share of positive labels; twice if the groups differ.",
            "base_rates",
        ),
    ),
    "Files": (
        Option(
            "files",
            "FILE…",
            "CSV, TSV, Excel, Parquet, JSON lines, a DuckDB database, a log of Inspect; a glob; or "
            "- for standard input.",
            "data",
        ),
        Option(
            "file", "FILE", "JSON of `fairperm audit` or `fairperm compare`; - for standard input."
        ),
        Option("file@app", "[FILE]", "Data to begin with: CSV, Excel, Parquet or JSON lines."),
        Option("no_open", "", "Open no browser; the address is printed."),
        Option("port", "N", "Port of the page. Default: any that is free.", default=0),
        Option("which", "METRIC…", "Names of metrics. Default: all."),
        Option("new", "FILE", "File of the new model; by default the same columns are read."),
        Option("before", "FILE", "Decisions on items."),
        Option("after", "FILE", "Decisions on the same items with another value of the attribute."),
        Option("id", "COLUMN…", "Column that names an item; joins two files."),
        Option("table", "NAME", "Table of a database, or sheet of an Excel file."),
        Option("sql", "SELECT", "Compute the columns; the files are the table data."),
        Option("where", "CONDITION", 'Keep these rows, in SQL: "age >= 18".'),
        Option(
            "format_", "FORMAT", f"Format of the files: {', '.join(Format)}.", choices=tuple(Format)
        ),
        Option("delimiter", "CHARACTER", "Separator of the columns of a CSV file."),
        Option("decimal", "MARK", "Decimal mark in a CSV file: . (the default) or ,", default="."),
        Option("encoding", "NAME", "Encoding of a CSV file: utf-8, latin-1 …"),
        Option("skip", "LINES", "Lines above the header, such as titles.", default=0),
        Option(
            "na",
            "TEXT…",
            "Text that means a missing value in a CSV file. Default: empty, NA, N/A, NaN, null, "
            "None.",
        ),
    ),
    "State": (
        Option(
            "state",
            "PATH",
            "File that keeps what is known between batches; it has no rows. The first batch "
            "makes it.",
        ),
        Option(
            "batch",
            "ID",
            "Name of the batch, which must be after the last one: a whole number, or text such as "
            "2026-03-01. The last one again is not counted again.",
        ),
    ),
    "Report": (
        Option("report", "PATH", "Write a report: one HTML file that works offline."),
        Option("report@demo", "PATH", "Path of the report.", default="fairperm-demo.html"),
        Option("short", "", "Leave the table of all comparisons and the method out."),
        Option("title", "TEXT", "Heading of the report."),
        Option("author", "NAME", "Who wrote the report."),
        Option("note", "TEXT", "Remark at the beginning of the report."),
        Option(
            "positive_means",
            "TEXT",
            'What a positive label means, to complete "people who …": "repaid the loan".',
        ),
        Option(
            "negative_means",
            "TEXT",
            'What any other label means, in the same way: "did not repay the loan".',
        ),
        Option("rename", "COLUMN:VALUE=NAME…", "Name of a group in the report: sex:F=women."),
    ),
    "Output": (
        Option("json", "PATH", "Write the whole result as JSON; - prints it."),
        Option("json@metrics", "PATH", "Write the list as JSON; - prints it."),
        Option("csv", "PATH", "Write the table as CSV; - prints it."),
        Option(
            "raw_names",
            "",
            "Write names to CSV unchanged, even if a spreadsheet would run them as formulas.",
        ),
        Option("xlsx", "PATH", "Write an Excel workbook, with a sheet for each table."),
        Option("markdown", "PATH", "Write the table as Markdown for a pull request; - prints it."),
        Option("junit", "PATH", "Write what --fail-on decides as JUnit's XML, for CI systems."),
        Option(
            "fail_on",
            "VERDICT…",
            "Exit with code 1 for disparity, inconclusive, too-small, ratio (--ratio is shown not "
            "to be met) or ratio-estimate (the estimate does not meet it).",
            choices=("disparity", "inconclusive", "too-small", "ratio", "ratio-estimate"),
        ),
        Option(
            "fail_on@changes",
            "VERDICT…",
            "Exit with code 1 for widened, inconclusive (or changed: its size is undecided) or "
            "too-small.",
            choices=("widened", "inconclusive", "too-small"),
        ),
        Option(
            "fail_on@periods",
            "VERDICT…",
            "Exit with code 1 for widened (a gap), worse (a group), changed (any change that is "
            "shown), inconclusive or too-small.",
            choices=("widened", "worse", "changed", "inconclusive", "too-small"),
        ),
        Option(
            "fail_on@selection",
            "VERDICT…",
            "Exit with code 1 for below (a ratio is shown to be below the bound) or estimate (a "
            "ratio is below it, shown or not).",
            choices=("below", "estimate"),
        ),
        Option(
            "fail_on@monitor",
            "VERDICT…",
            "Exit with code 1 for disparity (an alarm) or inconclusive.",
            choices=("disparity", "inconclusive"),
        ),
        Option("show_small", "", "Show each comparison that is too small for a verdict, too."),
        Option("quiet", "", "Print no table and no progress."),
        Option(
            "config",
            "PATH",
            "Read options from this file. Default: fairperm.toml, or [tool.fairperm] in "
            "pyproject.toml.",
        ),
        Option("debug", "", "Show the traceback of an error."),
    ),
}

OPTIONS = {one.key: one for options in TOPICS.values() for one in options}
_NO_ARGUMENTS = ("Assumptions", "Files", "State", "Report", "Output")  # topics


def find_options(keys: str) -> list[Option]:
    """Return the options with these keys, which spaces separate."""
    return [OPTIONS[key] for key in keys.split()]


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
