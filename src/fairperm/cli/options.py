"""The options that commands share, each described once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fairperm.cli import config, state

DEFAULT_METRICS = ("selection_rate", "false_positive_rate", "false_negative_rate")
_DATA = "Data"
_COLUMNS = "Columns"
_TEST = "Test"
_OUTPUT = "Output"


class Format(StrEnum):
    """What a file is."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    jsonl = "jsonl"
    arrow = "arrow"
    duckdb = "duckdb"
    sqlite = "sqlite"


class FailOn(StrEnum):
    """Verdicts that make the command fail."""

    disparity = "disparity"
    inconclusive = "inconclusive"
    too_small = "too-small"


def _option(
    panel: str, text: str, *names: str, metavar: str | None = None
) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        *names, help=text, rich_help_panel=panel, metavar=metavar, show_default=False
    )
    return option


Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV, TSV, Parquet, JSON lines, Arrow or Feather files; globs; '-' for standard "
        "input; or a DuckDB or SQLite database.",
    ),
]
Table = Annotated[str | None, _option(_DATA, "The table of a database.", metavar="NAME")]
Sql = Annotated[
    str | None,
    _option(_DATA, "A SELECT that makes the columns; files are the table data.", metavar="SELECT"),
]
Where = Annotated[
    str | None, _option(_DATA, 'Which rows to keep, in SQL: "age >= 18".', metavar="CONDITION")
]
FormatOption = Annotated[
    Format | None, _option(_DATA, "What the files are, if their names do not say.", "--format")
]
Delimiter = Annotated[
    str | None, _option(_DATA, "What separates the columns of a CSV file.", metavar="CHARACTER")
]
Decimal = Annotated[
    str,
    _option(
        _DATA,
        "The decimal mark of scores and weights in a CSV file: '.' or ','. Default: '.'.",
        metavar="MARK",
    ),
]
Encoding = Annotated[
    str | None,
    _option(_DATA, "The encoding of a CSV file: utf-8, latin-1 and so on.", metavar="NAME"),
]
Na = Annotated[
    list[str] | None,
    _option(
        _DATA,
        "What means a missing value in a CSV file (repeatable). Default: nothing, NA, N/A, NaN, "
        "null, None.",
        metavar="TEXT",
    ),
]
Label = Annotated[
    str | None,
    _option(_COLUMNS, "What is true: 0/1, or two values and --pos-label.", metavar="COLUMN"),
]
Prediction = Annotated[str | None, _option(_COLUMNS, "What was predicted.", metavar="COLUMN")]
Score = Annotated[str | None, _option(_COLUMNS, "The model's score.", metavar="COLUMN")]
Threshold = Annotated[
    float | None,
    _option(
        _COLUMNS,
        "A score of at least this is a positive prediction. Default: 0.5, for scores from 0 to 1.",
    ),
]
Group = Annotated[
    list[str] | None, _option(_COLUMNS, "A protected attribute (repeatable).", metavar="COLUMN")
]
OneGroup = Annotated[str | None, _option(_COLUMNS, "The protected attribute.", metavar="COLUMN")]
Pair = Annotated[
    tuple[str, str] | None,
    _option(
        _COLUMNS,
        "The first and the second group, if there are more than two.",
        metavar="FIRST SECOND",
    ),
]
PosLabel = Annotated[
    str | None, _option(_COLUMNS, "Which label is the positive one.", metavar="VALUE")
]
Control = Annotated[
    list[str] | None,
    _option(_COLUMNS, "Compare like with like in this column (repeatable).", metavar="COLUMN"),
]
StratumWeights = Annotated[
    list[str] | None,
    _option(
        _COLUMNS,
        "How much a stratum of --control counts, for each one (repeatable); of several columns "
        "VALUE,VALUE=N. Default: by its size.",
        metavar="VALUE=N",
    ),
]
Cluster = Annotated[
    str | None, _option(_COLUMNS, "Which rows belong together (a person's, say).", metavar="COLUMN")
]
Weight = Annotated[str | None, _option(_COLUMNS, "How much each row counts.", metavar="COLUMN")]
Missing = Annotated[
    str, _option(_COLUMNS, "Rows with missing values: error or drop. Default: error.")
]
ScoreBins = Annotated[
    int | None,
    _option(
        _COLUMNS,
        "Leave the rows in their files, and count scores in so many bins for roc_auc: for files "
        "larger than memory. Default: read every score.",
        metavar="N",
    ),
]
SampleRows = Annotated[
    int | None,
    _option(
        _COLUMNS,
        "Leave the rows in their files, and of more distinct ones than this test a random sample. "
        "Default: read every row.",
        metavar="N",
    ),
]
Metrics = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "What to compare (repeatable); `fairperm metrics` lists them. Default: "
        f"{', '.join(DEFAULT_METRICS)}.",
        "--metric",
        metavar="NAME",
    ),
]
Compare = Annotated[
    str | None,
    _option(
        _TEST,
        "pairs: every two groups; reference: each with one; rest: each with all others. Default: "
        "pairs, or reference where --reference is given.",
    ),
]
Reference = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "The group that others are compared with: GROUP, or COLUMN=GROUP (repeatable).",
        metavar="GROUP",
    ),
]
Intersections = Annotated[
    bool,
    _option(
        _TEST,
        "Look at the combinations of all --group columns too.",
        "--intersections/--no-intersections",
    ),
]
Adjust = Annotated[
    str, _option(_TEST, "For many comparisons: holm, bh, by, maxt or none. Default: holm.")
]
Alpha = Annotated[float, _option(_TEST, "The level of the tests. Default: 0.05.")]
Margin = Annotated[
    list[str] | None,
    _option(
        _TEST,
        "The largest gap that does not matter: NUMBER, or METRIC=NUMBER (repeatable).",
        metavar="NUMBER",
    ),
]
MinGroupSize = Annotated[
    int, _option(_TEST, "Groups with fewer rows are not judged. Default: 50.", metavar="ROWS")
]
Scheme = Annotated[
    str, _option(_TEST, "What is exchanged: auto, pooled, within_label or denominator.")
]
Variance = Annotated[
    str,
    _option(
        _TEST,
        "What gaps are divided by: auto, score, wald, delta, bootstrap, fast_bootstrap, none.",
    ),
]
Alternative = Annotated[str, _option(_TEST, "two-sided, greater or less. Default: two-sided.")]
Resamples = Annotated[int, _option(_TEST, "Random permutations. Default: 9999.", metavar="N")]
Bootstraps = Annotated[
    int, _option(_TEST, "Samples for --variance bootstrap. Default: 500.", metavar="N")
]
ConfidenceLevel = Annotated[float, _option(_TEST, "Of intervals. Default: 0.95.")]
Seed = Annotated[
    int | None, _option(_TEST, "The same seed gives the same numbers.", metavar="INTEGER")
]
Jobs = Annotated[int | None, _option(_TEST, "Threads; -1 for all cores.", metavar="N")]
Json = Annotated[
    str | None,
    _option(_OUTPUT, "Write everything as JSON; '-' prints it.", "--json", metavar="PATH"),
]
Csv = Annotated[
    str | None, _option(_OUTPUT, "Write the table as CSV; '-' prints it.", "--csv", metavar="PATH")
]
Markdown = Annotated[
    str | None,
    _option(_OUTPUT, "Write the table for a pull request; '-' prints it.", metavar="PATH"),
]
Report = Annotated[
    Path | None,
    _option(_OUTPUT, "Write a report: one HTML file that works offline.", metavar="PATH"),
]
Quiet = Annotated[bool, _option(_OUTPUT, "Print no table and no progress.", "--quiet", "-q")]
Fail = Annotated[
    list[FailOn] | None,
    _option(
        _OUTPUT, "End with exit code 1 if a comparison has this verdict (repeatable).", "--fail-on"
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
        callback=config.read,
    ),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show where an error came from.",
        rich_help_panel=_OUTPUT,
        show_default=False,
        is_eager=True,
        callback=state.set_debug,
    ),
]
