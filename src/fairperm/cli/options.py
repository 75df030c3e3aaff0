"""The options that several commands share, each defined once, and what their values mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairperm.cli import config
from fairperm.data.arguments import DEFAULT_METRICS
from fairperm.errors import InputError, rename_arguments, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

_NOT_SETTINGS = frozenset(
    {"files", "json", "csv", "raw_names", "markdown", "report", "quiet"}
    | {"config", "debug", "fail_on"}
    | {"title", "author", "note", "positive_means", "rename", "short"}
)
_DATA = "Data"
_COLUMNS = "Columns"
_TEST = "Test"
_OUTPUT = "Output"
_REPORT = "Report"


class Format(StrEnum):
    """Format of a file."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    jsonl = "jsonl"
    arrow = "arrow"
    duckdb = "duckdb"
    sqlite = "sqlite"
    xlsx = "xlsx"


class FailOn(StrEnum):
    """Verdicts that make the command fail; "ratio" is a rule of --ratio that is not met.

    It is shown not to be met; "ratio-estimate" fails if the ratio itself breaks the rule.
    """

    disparity = "disparity"
    inconclusive = "inconclusive"
    too_small = "too-small"
    ratio = "ratio"
    ratio_estimate = "ratio-estimate"


class FailOnChange(StrEnum):
    """Verdicts on changes that make the command fail."""

    widened = "widened"
    inconclusive = "inconclusive"
    too_small = "too-small"


class BetterValues(StrEnum):
    """Which values are better."""

    HIGHER = "higher"
    LOWER = "lower"


def _option(
    panel: str,
    text: str,
    *names: str,
    metavar: str | None = None,
    parser: Callable[[str], Any] | None = None,
) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        *names, help=text, rich_help_panel=panel, metavar=metavar, show_default=False, parser=parser
    )
    return option


def parse_resamples(text: str) -> int | str:
    """Return an integer, or any other text as it is: only "auto" will do."""
    try:
        return int(text)
    except ValueError:
        return text


Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV, TSV, Parquet, JSON lines, Arrow, Feather or Excel files; globs; '-' for "
        "standard input; or a DuckDB or SQLite database.",
    ),
]
Table = Annotated[
    str | None, _option(_DATA, "Table of a database, or sheet of an Excel file.", metavar="NAME")
]
Sql = Annotated[
    str | None,
    _option(
        _DATA, "SELECT that returns the columns; the files are the table data.", metavar="SELECT"
    ),
]
Where = Annotated[
    str | None,
    _option(_DATA, 'Condition on the rows to keep, in SQL: "age >= 18".', metavar="CONDITION"),
]
FormatOption = Annotated[
    Format | None, _option(_DATA, "Format of the files, if their names do not show it.", "--format")
]
Delimiter = Annotated[
    str | None, _option(_DATA, "Separator of the columns of a CSV file.", metavar="CHARACTER")
]
Decimal = Annotated[
    str,
    _option(
        _DATA,
        "Decimal mark of scores and weights in a CSV file: '.' or ','. Default: '.'.",
        metavar="MARK",
    ),
]
Encoding = Annotated[
    str | None,
    _option(_DATA, "Encoding of a CSV file: utf-8, latin-1 and so on.", metavar="NAME"),
]
Skip = Annotated[
    int,
    _option(
        _DATA, "Lines above the header of a CSV or Excel file, such as titles.", metavar="LINES"
    ),
]
Na = Annotated[
    list[str] | None,
    _option(
        _DATA,
        "Text that means a missing value in a CSV file (repeatable). Default: empty, NA, N/A, NaN, "
        "null, None.",
        metavar="TEXT",
    ),
]
Label = Annotated[
    str | None,
    _option(
        _COLUMNS,
        "Column of true labels: 0/1, or two values and --pos-label; of numbers, for errors and "
        "deviances of predicted numbers. selection_rate needs none.",
        metavar="COLUMN",
    ),
]
Prediction = Annotated[str | None, _option(_COLUMNS, "Column of predictions.", metavar="COLUMN")]
Score = Annotated[str | None, _option(_COLUMNS, "Column of scores.", metavar="COLUMN")]
ClassScore = Annotated[
    list[str] | None,
    _option(
        _COLUMNS,
        "Column of the scores of a class, one for each class of --label (repeatable); for the mean "
        "AUC over classes, roc_auc_ovr.",
        metavar="CLASS=COLUMN",
    ),
]
PredictionNew = Annotated[
    str | None, _option(_COLUMNS, "Column of the new model's predictions.", metavar="COLUMN")
]
ScoreNew = Annotated[
    str | None, _option(_COLUMNS, "Column of the new model's scores.", metavar="COLUMN")
]
ThresholdNew = Annotated[
    float | None,
    _option(_COLUMNS, "Threshold of the new model's scores. Default: that of the old ones."),
]
Threshold = Annotated[
    float | None,
    _option(
        _COLUMNS,
        "Scores of at least this are positive predictions. Default: 0.5, for scores from 0 to 1.",
    ),
]
Group = Annotated[
    list[str] | None,
    _option(
        _COLUMNS,
        "Column of a protected attribute (repeatable). Columns separated by commas (sex,race) are "
        "one attribute: the combinations of their values.",
        metavar="COLUMN",
    ),
]
Feature = Annotated[
    list[str] | None,
    _option(_COLUMNS, "Column that describes subgroups (repeatable).", metavar="COLUMN"),
]
OneGroup = Annotated[
    str | None, _option(_COLUMNS, "Column of the protected attribute.", metavar="COLUMN")
]
Pair = Annotated[
    tuple[str, str] | None,
    _option(
        _COLUMNS,
        "First and second group, if there are more than two.",
        metavar="FIRST SECOND",
    ),
]
PosLabel = Annotated[str | None, _option(_COLUMNS, "Label of the positive class.", metavar="VALUE")]
Control = Annotated[
    list[str] | None,
    _option(
        _COLUMNS, "Column of strata: compare rows only within them (repeatable).", metavar="COLUMN"
    ),
]
StratumWeights = Annotated[
    list[str] | None,
    _option(
        _COLUMNS,
        "Weight of a stratum of --control, one for each (repeatable); with several columns "
        "VALUE,VALUE=N. Default: by size.",
        metavar="VALUE=N",
    ),
]
Cluster = Annotated[
    str | None,
    _option(
        _COLUMNS,
        "Column of clusters: rows that belong together, such as those of one person.",
        metavar="COLUMN",
    ),
]
SplitClusters = Annotated[
    bool,
    _option(
        _COLUMNS,
        "Split clusters that span several groups.",
        "--split-clusters/--no-split-clusters",
    ),
]
Period = Annotated[
    str | None, _option(_COLUMNS, "Column of periods, sites or versions.", metavar="COLUMN")
]
Periods = Annotated[
    list[str] | None,
    _option(
        _COLUMNS,
        "Period to compare, in order (repeatable). Default: all, sorted; text must sort by time.",
        metavar="VALUE",
    ),
]
Relevance = Annotated[
    str | None,
    _option(
        _COLUMNS,
        "Column of relevance to the query: 0 or 1, or for ndcg and exposure_per_relevance any "
        "number from 0 on. Other metrics of items need none.",
        metavar="COLUMN",
    ),
]
Rank = Annotated[
    str | None,
    _option(
        _COLUMNS, "Column of positions in the list, from 1, instead of scores.", metavar="COLUMN"
    ),
]
Query = Annotated[
    str | None, _option(_COLUMNS, "Column of queries, each with one list.", metavar="COLUMN")
]
Matched = Annotated[
    str | None,
    _option(
        _COLUMNS,
        "Column of matched sets, such as pairs: groups are exchanged inside each set.",
        metavar="COLUMN",
    ),
]
Weight = Annotated[
    str | None, _option(_COLUMNS, "Column of the weights of rows.", metavar="COLUMN")
]
Missing = Annotated[
    str,
    _option(
        _COLUMNS,
        "Treatment of missing values: error; drop, leave out their rows; group, make a group of "
        "rows without a value in --group. Default: error.",
    ),
]
ScoreBins = Annotated[
    int | None,
    _option(
        _COLUMNS,
        "Number of bins in which to count the scores, for files larger than memory; for roc_auc, "
        "brier_score, log_loss and means of scores. Default: read every score, and put them into "
        "131,072 bins if more than 1,048,576 rows are distinct, if the error is negligible.",
        metavar="N",
    ),
]
Metrics = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "Metric to test (repeatable); `fairperm metrics` lists them. Default: "
        f"{', '.join(DEFAULT_METRICS)}; without labels, {DEFAULT_METRICS[0]}.",
        "--metric",
        metavar="NAME",
    ),
]
Distances = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "Distance between the groups' distributions of --score, or of --prediction without it "
        "(repeatable): ks, wasserstein, total_variation and so on; 'ks_given_label' compares rows "
        "of equal label. Without --metric, only distances are tested.",
        "--distance",
        metavar="NAME",
    ),
]
Rankings = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "Metric of ranked lists (repeatable): ndcg, precision, exposure and so on, as in "
        "`fairperm ranking`; 'ndcg@5' for the top 5. Rows are items, --label is their relevance, "
        "and --score ranks them. Needs --query. Without --metric, only rankings are tested.",
        "--ranking",
        metavar="NAME",
    ),
]
OneMetric = Annotated[
    str | None,
    _option(_TEST, "Metric to test; `fairperm metrics` lists them.", "--metric", metavar="NAME"),
]
Against = Annotated[
    str,
    _option(
        _TEST,
        "Period to compare each one with: the previous or the first. Default: previous.",
    ),
]
RankingMetric = Annotated[
    str,
    _option(
        _TEST,
        "Quality of a query's list: ndcg, precision, recall, average_precision, reciprocal_rank or "
        "hit_rate. Exposure of items within lists: exposure, exposure_per_relevance, top_k_share "
        "or skew. Order of all groups at once: ndkl. Default: ndcg.",
        "--metric",
        metavar="NAME",
    ),
]
TopK = Annotated[
    int,
    _option(
        _TEST,
        "How many items from the top of a list count. Default: 10. average_precision, exposure, "
        "exposure_per_relevance and ndkl count whole lists.",
        metavar="N",
    ),
]
Compare = Annotated[
    str | None,
    _option(
        _TEST,
        "Groups to compare: pairs, every two; reference, each with one; rest, each with all "
        "others. Default: pairs, or reference if --reference is given.",
    ),
]
Reference = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "Group to compare the others with: GROUP, or COLUMN=GROUP (repeatable).",
        metavar="GROUP",
    ),
]
OneReference = Annotated[
    str | None,
    _option(
        _TEST,
        "Group to compare the others with; by default the largest.",
        "--reference",
        metavar="GROUP",
    ),
]
Intersections = Annotated[
    bool,
    _option(
        _TEST,
        "Compare the combinations of all --group columns, too.",
        "--intersections/--no-intersections",
    ),
]
Adjust = Annotated[
    str,
    _option(
        _TEST,
        "Adjustment for multiple comparisons: holm, bh, by or none. Default: holm.",
        "--adjust",
    ),
]
Family = Annotated[
    str,
    _option(
        _TEST,
        "Comparisons that are adjusted together: audit, all; attribute, those of each --group "
        "column. Default: audit.",
    ),
]
Alpha = Annotated[float, _option(_TEST, "Nominal level of the tests. Default: 0.05.")]
Margin = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "Largest gap that does not matter: NUMBER, or METRIC=NUMBER (repeatable).",
        metavar="NUMBER",
    ),
]
Ratio = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "Smallest acceptable ratio of either group's value to the other's, such as 0.8 for the "
        "four-fifths rule: NUMBER, or METRIC=NUMBER (repeatable).",
        metavar="NUMBER",
    ),
]
OneMargin = Annotated[
    float | None,
    _option(_TEST, "Test whether the gap is smaller than this.", "--margin", metavar="NUMBER"),
]
OneRatio = Annotated[
    float | None,
    _option(
        _TEST,
        "Test whether the ratio of either group's value to the other's is larger than this; 0.8 is "
        "the four-fifths rule.",
        "--ratio",
        metavar="NUMBER",
    ),
]
Better = Annotated[
    BetterValues | None,
    _option(
        _TEST,
        "With --margin or --ratio, test only whether the first group is not worse: higher or "
        "lower values are better.",
        "--better",
    ),
]
MinGroupSize = Annotated[
    int, _option(_TEST, "Fewest rows of a group that gets a verdict. Default: 50.", metavar="ROWS")
]
GroupSizeBy = Annotated[
    str,
    _option(
        _TEST,
        "What --min-group-size counts: metric (rows in the metric's denominator) or rows (all). "
        "Default: metric.",
    ),
]
MaxDepth = Annotated[int, _option(_TEST, "Most conditions of a subgroup. Default: 3.", metavar="N")]
MinRows = Annotated[
    int,
    _option(
        _TEST,
        "Fewest rows in the metric's denominator, of a subgroup and of the rest. Default: 30.",
        metavar="ROWS",
    ),
]
Bands = Annotated[
    int, _option(_TEST, "Most quantile bands of a column of numbers. Default: 4.", metavar="N")
]
SearchAdjust = Annotated[
    str,
    _option(_TEST, "Adjustment for the search: maxt, holm, bh or by. Default: maxt.", "--adjust"),
]
Confirm = Annotated[
    float | None,
    _option(
        _TEST,
        "Share of rows that are not searched, in which the subgroups found are tested.",
        metavar="SHARE",
    ),
]
SearchResamples = Annotated[
    int, _option(_TEST, "Number of random permutations. Default: 999.", "--resamples", metavar="N")
]
Scheme = Annotated[
    str,
    _option(_TEST, "What is exchanged: auto, pooled, within_label, denominator or unconditional."),
]
Variance = Annotated[
    str,
    _option(
        _TEST,
        "Standard error used to studentize the gap: auto, score, wald, delta, bootstrap, "
        "fast_bootstrap or none.",
    ),
]
Alternative = Annotated[
    str, _option(_TEST, "Alternative: two-sided, symmetric, greater or less. Default: two-sided.")
]
Resamples = Annotated[
    Any,
    _option(
        _TEST,
        "Number of random permutations, or auto: until 20 are as extreme as the data, at most "
        "9999 (more in audits of many hypotheses). Default: auto.",
        metavar="N",
        parser=parse_resamples,
    ),
]
SweepResamples = Annotated[
    int,
    _option(_TEST, "Number of random permutations. Default: 9999.", "--resamples", metavar="N"),
]
Bootstraps = Annotated[
    int, _option(_TEST, "Number of samples for bootstrap variances. Default: 500.", metavar="N")
]
ConfidenceLevel = Annotated[
    float, _option(_TEST, "Confidence level of the intervals. Default: 0.95.")
]
Seed = Annotated[
    int | None,
    _option(
        _TEST,
        "Seed of the random numbers; the same seed gives the same numbers.",
        metavar="INTEGER",
    ),
]
Jobs = Annotated[int | None, _option(_TEST, "Number of threads; -1 for all cores.", metavar="N")]
Json = Annotated[
    str | None,
    _option(_OUTPUT, "Write the whole result as JSON; '-' prints it.", "--json", metavar="PATH"),
]
Csv = Annotated[
    str | None, _option(_OUTPUT, "Write the table as CSV; '-' prints it.", "--csv", metavar="PATH")
]
RawNames = Annotated[
    bool,
    _option(
        _OUTPUT,
        "Write names to CSV unchanged, even if a spreadsheet would run them as formulas.",
        "--raw-names",
    ),
]
Markdown = Annotated[
    str | None,
    _option(
        _OUTPUT, "Write the table as Markdown for a pull request; '-' prints it.", metavar="PATH"
    ),
]
Report = Annotated[
    Path | None,
    _option(_OUTPUT, "Write a report: one HTML file that works offline.", metavar="PATH"),
]
Title = Annotated[str | None, _option(_REPORT, "Heading of the report.", metavar="TEXT")]
Author = Annotated[str | None, _option(_REPORT, "Who wrote the report.", metavar="NAME")]
ReportNote = Annotated[
    str | None, _option(_REPORT, "Remark at the beginning of the report.", metavar="TEXT")
]
PositiveMeans = Annotated[
    str | None,
    _option(
        _REPORT,
        'What a positive label means, to complete "people who …": "repaid the loan".',
        metavar="TEXT",
    ),
]
Rename = Annotated[
    list[str] | None,
    _option(
        _REPORT,
        "Name of a group in the report (repeatable): sex:F=women.",
        metavar="COLUMN:VALUE=NAME",
    ),
]
Short = Annotated[
    bool,
    _option(
        _REPORT,
        "Write a short report: summary, findings, data and chart, without the table of all "
        "comparisons and the method.",
        "--short",
    ),
]
Quiet = Annotated[bool, _option(_OUTPUT, "Print no table and no progress.", "--quiet", "-q")]
Fail = Annotated[
    list[FailOn] | None,
    _option(
        _OUTPUT,
        "Exit with code 1 if a comparison has this verdict (repeatable), and with code 2 if that "
        "cannot be evaluated.",
        "--fail-on",
    ),
]
FailChange = Annotated[
    list[FailOnChange] | None,
    _option(
        _OUTPUT,
        "Exit with code 1 if a change of a gap has this verdict (repeatable), and with code 2 if "
        "that cannot be evaluated.",
        "--fail-on",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="Read options from this file. Default: fairperm.toml, or \\[tool.fairperm] in "
        "pyproject.toml.",
        rich_help_panel=_OUTPUT,
        metavar="PATH",
        show_default=False,
        is_eager=True,
        callback=config.read_defaults,
    ),
]
Debug = Annotated[bool, _option(_OUTPUT, "Show the traceback of an error.", "--debug")]


def parse_word(value: str) -> str | None:
    """Return the word, or None for "none"."""
    return None if value.strip().lower() == "none" else value


def parse_numbers(option: str, given: Sequence[str] | None) -> Any:
    """Return one number, or numbers by name from NAME=NUMBER."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return parse_number(option, given[0])
    return parse_pairs(option, given, "NUMBER or NAME=NUMBER", "With several, each needs a name.")


def parse_pairs(option: str, given: Sequence[str], rule: str, hint: str = "") -> dict[str, float]:
    """Return numbers by name from NAME=NUMBER."""
    found: dict[str, float] = {}
    for text in given:
        name, mark, value = text.rpartition("=")
        if not mark or not name.strip():
            raise InputError(option, rule, text, hint)
        if name.strip() in found:
            raise InputError(f"{option} must be given only once for {shown(name.strip())}.")
        found[name.strip()] = parse_number(option, value)
    return found


def parse_columns(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """Return columns by the classes whose scores they have, from CLASS=COLUMN."""
    found: dict[str, str] = {}
    for text in given or ():
        name, mark, column = text.rpartition("=")
        if not mark or not name or not column:
            raise InputError(option, "CLASS=COLUMN", text)
        if name in found:
            raise InputError(f"{option} must be given only once for {shown(name)}.")
        found[name] = column
    return found


def name_scores(of_classes: Sequence[str] | None) -> AbstractContextManager[None]:
    """Name the scores in errors by the option that they were given by."""
    return rename_arguments({"y_score": "class_score"} if of_classes else {})


def parse_number(option: str, text: str) -> float:
    """Return a text as a number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(option, "a number", text) from None


def split_columns(text: str) -> str | tuple[str, ...]:
    """Return the column of a ``--group``, or several that are combined.

    Examples
    --------
    >>> split_columns("sex"), split_columns("sex,race")
    ('sex', ('sex', 'race'))
    """
    names = tuple(text.split(","))
    return names if len(names) > 1 else text


def find_metric(name: str, option: str = "--metric") -> Any:
    """Return the metric of this name."""
    from fairperm.metrics.registry import get_metric

    try:
        return get_metric(name)
    except InputError as error:
        rule = "one that `fairperm metrics` lists"
        raise InputError(option, rule, name, error.hint) from None


def collect_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that decide the numbers, ready for JSON."""
    return {
        name: _make_plain(value)
        for name, value in params.items()
        if name not in _NOT_SETTINGS and value not in (None, [], ())
    }


def _make_plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_make_plain(one) for one in value]
    return getattr(value, "value", value)
