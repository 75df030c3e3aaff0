"""From files to the data of a test: a DuckDB relation where equal rows can be counted, else Arrow.

The library counts the rows of the relation where they are. Metrics of scores, weights and clusters
need every row. Where DuckDB is not installed, text files become columns of Python and NumPy.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairperm._utils.checks import choice, integer
from fairperm._utils.optional import optional
from fairperm._utils.progress import waiting
from fairperm.cli.files import column_types as types
from fairperm.cli.files import plain
from fairperm.cli.files.formats import (
    ENCODING_HINT,
    LONG_LINE,
    MISSING,
    SKIP_HINT,
    TEXTS,
    ReadOptions,
    Relation,
    check_outputs_not_inputs,
    describe_full_folder,
    find_files,
    open_relation,
)
from fairperm.cli.files.joined import join
from fairperm.cli.files.sql import (
    Memory,
    check_condition,
    check_select,
    connect,
    first_line,
    interrupt_on_signal,
    quote_name,
    quote_text,
)
from fairperm.cli.files.temporary import make_private_folder
from fairperm.cli.outputs import OUTPUTS
from fairperm.cli.values import (
    find_metric,
    list_columns,
    parse_columns,
    parse_pairs,
    parse_probabilities,
)
from fairperm.errors import (
    FairpermError,
    InputError,
    MissingPartError,
    did_you_mean,
    listed,
    shown,
    unknown_name,
)
from fairperm.metrics.definition import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fairperm.cli.files.formats import InputFile
    from fairperm.metrics.definition import AnyMetric

_BATCH = 1 << 20
_ORDER = {"": 0, types.LABEL: 1, types.NAME: 2, types.NUMBER: 3}  # of a column with several roles
COLUMNS = {  # of columns, by the options that name them
    "label": types.LABEL,
    "prediction": types.LABEL,
    "selected": types.LABEL,
    "score": types.NUMBER,
    "class_score": types.NUMBER,
    "prediction_new": types.LABEL,
    "score_new": types.NUMBER,
    "group": types.NAME,
    "group_probability": types.NUMBER,
    "proxy": types.NAME,
    "feature": types.LABEL,
    "control": types.NAME,
    "cluster": types.NAME,
    "matched": types.NAME,
    "names": types.NAME,
    "period": types.NAME,
    "weight": types.NUMBER,
    "count": types.NUMBER,
    "applicants": types.NUMBER,
    "relevance": types.NUMBER,
    "rank": types.NUMBER,
    "query": types.NAME,
    "id": types.NAME,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The columns that a test needs, each with the option that names it and its role.

    ``needs_rows``: rows are needed one by one, and counts are not enough. ``stays_in_files``: rows
    are counted in their files all the same. ``may_be_binned``: of very many rows, scores may be put
    into bins.
    """

    columns: Mapping[str, tuple[str, str]]
    needs_rows: bool
    stays_in_files: bool = False
    may_be_binned: bool = False


def _list_columns(named: Mapping[str, Any], **roles: str) -> dict[str, tuple[str, str]]:
    """Return the option and the role of every column that these options name."""
    found: dict[str, tuple[str, str]] = {}
    for name, role in (COLUMNS | roles).items():
        given = named.get(name) or ()
        for column in (given,) if isinstance(given, str) else given:
            if _ORDER[role] > _ORDER[found.get(column, ("", ""))[1]]:
                found[column] = f"--{name.replace('_', '-')}", role
    return found


@dataclass(frozen=True, slots=True)
class LoadedData:
    """The data for a test (a relation or a table), its columns, and its files.

    ``clear_errors`` is for everything that counts the rows: it names the files in errors.
    ``of_second`` says what the columns of a second file are called here.
    """

    data: Any
    columns: tuple[str, ...]
    files: list[dict[str, Any]]
    clear_errors: Callable[[], AbstractContextManager[None]]
    of_second: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        if isinstance(self.data, dict):
            return len(self.data[self.columns[0]])
        import narwhals.stable.v2 as nw

        return int(nw.from_native(self._frame).lazy().select(nw.len()).collect().item())

    @property
    def _frame(self) -> Any:
        from fairperm.data.lazy.backends import BinnableRows

        return self.data.rows if isinstance(self.data, BinnableRows) else self.data

    def column_if_read(self, column: str | None) -> str | None:
        """Return the name of the column if the test needs it."""
        return column if column in self.columns else None

    def find_new(self, column: str | None) -> str | None:
        """Return what a column of the new model is called here: it may be of a second file."""
        return self.of_second.get(str(column)) if self.of_second else self.column_if_read(column)

    def find_scores(
        self, label: str | None, score: str | None, of_classes: Sequence[str] | None
    ) -> str | dict[object, str] | None:
        """Return the column of scores that the test needs, or one for each class of the label."""
        columns = parse_columns("--class-score", of_classes)
        if not columns:
            return self.column_if_read(score)
        return {self.find_value(label, name): column for name, column in columns.items()}

    def distinct_rows(self, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the distinct combinations of values in these columns."""
        if isinstance(self.data, dict):
            chosen = (self.data[name] for name in columns)
            lists = (one if isinstance(one, list) else one.tolist() for one in chosen)
            return [*dict.fromkeys(zip(*lists, strict=True))]
        import narwhals.stable.v2 as nw

        rows = nw.from_native(self._frame).lazy().select(*columns).unique()
        return [tuple(row) for row in rows.collect().iter_rows()]

    def find_value(self, column: str | None, text: str | None) -> object:
        """Return the value of a column that a text from the user means; None without a text."""
        if column is None or text is None:
            return None
        values = [value for (value,) in self.distinct_rows([column])]
        for value in values:
            if str(value) == text and value is not None:
                return value
        for value in values:
            if isinstance(value, (bool, int, float)) and _is_same(text, value):
                return value
        return text  # the test raises, and lists the values

    def find_stratum_weights(
        self, controls: Sequence[str] | None, given: Sequence[str] | None
    ) -> dict[Any, float] | None:
        """Return the weights of strata, given as VALUE=NUMBER."""
        if not given:
            return None
        if not controls:
            raise InputError("--stratum-weights needs --control, the column of strata.")
        known: dict[str, list[Any]] = {}
        for values in self.distinct_rows(controls):
            stratum = values if len(controls) > 1 else values[0]
            known.setdefault(",".join(map(str, values)), []).append(stratum)
        found: dict[Any, float] = {}
        for text, weight in parse_pairs("--stratum-weights", given, "VALUE=NUMBER").items():
            meant = known.get(text, [])
            if len(meant) != 1:
                rule = f"VALUE=NUMBER with strata of --control ({listed(sorted(known))})"
                hint = "Several strata have this name." if meant else did_you_mean(text, known)
                raise InputError("--stratum-weights", rule, text, hint)
            found[meant[0]] = weight
        return found


def _is_same(text: str, value: float) -> bool:
    """Return whether a text is another spelling of this boolean or number: true, 1.0."""
    if isinstance(value, bool):
        return text.strip().casefold() == str(value).casefold()
    try:
        return float(text) == value
    except ValueError:
        return False


def read_columns(
    params: Mapping[str, Any],
    metrics: Sequence[str],
    *,
    with_hashes: bool,
    rows: bool = False,
) -> AbstractContextManager[LoadedData]:
    """Read the columns that the options of a command name; ``rows`` asks for every row."""
    from fairperm.data.score_bins import takes_bins

    _check_files(params)
    kinds = [find_metric(name) for name in metrics]
    label, prediction, score = (params.get(name) for name in ("label", "prediction", "score"))
    of_classes = parse_columns("--class-score", params.get("class_score"))
    _check_class_scores(kinds, of_classes, params)
    groups, features = params.get("group") or (), tuple(params.get("feature") or ())
    _, probabilities = parse_probabilities(params.get("group_probability"))
    needing = [one.name for one in kinds if "y_true" in one.columns]
    if not label and needing:
        raise InputError(
            f"--label must be given for {needing[0]}: the column of true labels. Without labels, "
            "--metric selection_rate can be tested."
        )
    if "feature" in params and not features:
        raise InputError("--feature must be given: a column that describes subgroups.")
    if "feature" not in params and not groups and not probabilities:
        raise InputError("--group must be given: the column of a protected attribute.")
    distances, rankings = params.get("distance"), params.get("ranking")
    needs_output = distances or rankings or any(set(one.columns) - {"y_true"} for one in kinds)
    if not prediction and not score and not of_classes and needs_output:
        raise InputError("--prediction or --score must be given: a column of the model's output.")
    can_count = all(one.kind.is_categorical for one in kinds) and not (distances and score)
    can_count = can_count and not rankings
    prediction_new, score_new = params.get("prediction_new"), params.get("score_new")
    moves_together = any(params.get(one) for one in ("cluster", "matched", "weight"))
    moves_together = moves_together or bool(probabilities)
    has_counts = params.get("count") is not None
    has_other_tests = bool(features or distances or rankings or prediction_new or score_new)
    columns = {
        **params,
        "score": score if not can_count or prediction is None else None,
        "class_score": [*of_classes.values()],
        "group_probability": probabilities,
        "score_new": score_new if not can_count or prediction_new is None else None,
        "group": groups
        if isinstance(groups, str)
        else [name for one in groups for name in list_columns(one)],
    }
    wanted = Wanted(
        columns=_list_columns(columns),
        needs_rows=rows or not can_count or moves_together or has_counts,
        stays_in_files=params.get("score_bins") is not None,
        may_be_binned=not has_other_tests
        and not (moves_together or has_counts)
        and all(one.kind.is_categorical or takes_bins(one) for one in kinds),
    )
    if params.get("new") is None:
        return _read_wanted(params, wanted, with_hashes=with_hashes)
    if not params["id"]:
        raise InputError("--id must be given with --new: the column that names an item.")
    of_new = ("prediction_new", "score_new")
    old = _list_columns({name: one for name, one in columns.items() if name not in of_new})
    new = _list_columns({name: columns[name] for name in (*of_new, "id")})
    return _read_pair(params, ("files", old), ("new", new), with_hashes=with_hashes)


def read_flips(
    params: Mapping[str, Any], *, with_hashes: bool
) -> AbstractContextManager[LoadedData]:
    """Read the decisions on the same items before and after a change of an attribute."""
    before, after = _list_columns(params), _list_columns({**params, "feature": None})
    return _read_pair(params, ("before", before), ("after", after), with_hashes=with_hashes)


@contextmanager
def _read_pair(
    params: Mapping[str, Any],
    *sides: tuple[str, Mapping[str, tuple[str, str]]],
    with_hashes: bool,
) -> Iterator[LoadedData]:
    """Read the files of two options, each with its columns, and join their rows by --id."""
    with optional("Joining two files"):
        import duckdb  # noqa: F401
        import pyarrow  # noqa: ICN001, F401

    read, names = [], []
    with ExitStack() as stack:
        for option, columns in sides:
            files = [params[option]] if isinstance(params[option], str) else params[option]
            given, wanted = {**params, "files": files}, Wanted(columns=columns, needs_rows=True)
            one = stack.enter_context(_read_wanted(given, wanted, with_hashes=with_hashes))
            if option != "files":
                one = replace(one, files=[{**each, "option": option} for each in one.files])
            read.append(one)
            names.append(", ".join(files))
        yield join(read, params["id"], names, drops=params["missing"] == "drop")


def _check_class_scores(
    metrics: Sequence[AnyMetric], of_classes: Mapping[str, str], params: Mapping[str, Any]
) -> None:
    """Raise InputError for scores of classes without a metric of them, or the reverse."""
    wanting = [one.name for one in metrics if one.kind == Kind.CLASS_SCORES]
    if of_classes and params["score"]:
        raise InputError("Pass --score or --class-score, not both.")
    for option, column in {"distance": "--score or --prediction", "ranking": "--score"}.items():
        if of_classes and params.get(option):
            raise InputError(
                f"--{option} cannot be used with --class-score: it needs one column, {column}."
            )
    if of_classes and not wanting:
        raise InputError(
            "--class-score is for roc_auc_ovr, roc_auc_ovr_weighted and metrics of one class, "
            "such as 'roc_auc[cat]'. Pass --metric roc_auc_ovr."
        )
    if wanting and not of_classes and "class_score" in params:
        raise InputError(
            f"--class-score must be given for {wanting[0]}: CLASS=COLUMN of each class."
        )


def read_rankings(
    params: Mapping[str, Any], *, with_hashes: bool
) -> AbstractContextManager[LoadedData]:
    """Read the columns of ranked lists that the options of a command name."""
    _check_files(params)
    wanted = Wanted(columns=_list_columns(params), needs_rows=True)
    return _read_wanted(params, wanted, with_hashes=with_hashes)


def read_selection(
    params: Mapping[str, Any], *, with_hashes: bool
) -> AbstractContextManager[LoadedData]:
    """Read the columns of applicants that the options of a command name."""
    _check_files(params)
    if (params["selected"] is None) == (params["score"] is None):
        raise InputError(
            "--selected or --score must be given: the column of who was selected, or of scores."
        )
    _, probabilities = parse_probabilities(params["group_probability"])
    if not params["group"] and not probabilities:
        raise InputError("--group must be given: the column of a protected attribute.")
    selected = types.LABEL if params["applicants"] is None else types.NUMBER
    wanted = Wanted(
        columns=_list_columns({**params, "group_probability": probabilities}, selected=selected),
        needs_rows=bool(probabilities)
        or any(params[one] is not None for one in ("score", "count", "applicants")),
    )
    return _read_wanted(params, wanted, with_hashes=with_hashes)


def _check_files(params: Mapping[str, Any]) -> None:
    if not params.get("files"):
        raise InputError("FILE must be given: a file, a glob, or '-' for standard input.")


@contextmanager
def _read_wanted(
    params: Mapping[str, Any], wanted: Wanted, *, with_hashes: bool
) -> Iterator[LoadedData]:
    """Read the wanted columns; the database is open as long as rows stay in it."""
    from fairperm.data.lazy.backends import is_lazy

    options = ReadOptions(
        table=params.get("table"),
        sql=params.get("sql"),
        where=params.get("where"),
        delimiter=params.get("delimiter"),
        decimal=choice("decimal", params.get("decimal", "."), (".", ",")),
        encoding=params.get("encoding"),
        skip=integer("--skip", params.get("skip", 0), 0, 1_000_000),
        missing_words=tuple(dict.fromkeys(("", *params["na"]))) if params.get("na") else MISSING,
    )
    outputs = {f"--{one}": str(params[one]) for one in OUTPUTS if params.get(one)}
    with ExitStack() as stack:
        with waiting("reading", False if params.get("quiet") else None):
            folder = stack.enter_context(make_private_folder())
            files = find_files(params["files"], params.get("format_"), folder)
            check_outputs_not_inputs([file.name for file in files], outputs)
            clear_errors: Callable[[], AbstractContextManager[None]] = nullcontext
            data: Any
            if _needs_database(files, options, wanted):
                clear_errors = partial(name_files_in_errors, files, folder)
                with clear_errors():
                    data, columns = _open_data(stack, files, folder, options, wanted)
            else:
                data = plain.read_texts(files, folder, options, wanted.columns)
                columns = tuple(data)
            described = [file.describe() for file in files] if with_hashes else []
        if not is_lazy(data):
            stack.close()
        yield LoadedData(data, columns, described, clear_errors)


def _needs_database(files: Sequence[InputFile], options: ReadOptions, wanted: Wanted) -> bool:
    """Whether DuckDB reads the files: where it is installed, or where nothing else can.

    Raises MissingPartError if it is needed and missing.
    """
    try:
        what = shown(files[0].name)
        how = " with these options" if files[0].format in TEXTS else ""
        with optional(f"Reading {what}{how}"):
            import duckdb  # noqa: F401
            import pyarrow  # noqa: ICN001, F401
    except MissingPartError:
        if wanted.stays_in_files or not plain.can_read(files, options):
            raise
        return False
    return True


def _open_data(
    stack: ExitStack,
    files: Sequence[InputFile],
    folder: Path,
    options: ReadOptions,
    wanted: Wanted,
) -> tuple[Any, tuple[str, ...]]:
    """Return the data, in a database that the stack closes, and the names of their columns."""
    from fairperm.data.lazy.backends import BinnableRows
    from fairperm.data.lazy.counting import MAX_KINDS

    connection = connect(folder)
    stack.callback(connection.close)
    stack.enter_context(interrupt_on_signal(connection))
    relation = open_relation(connection, files, folder, options, [*wanted.columns])
    if options.sql is None and options.where is None:
        _check_repeats(connection, relation, wanted, is_inspect=files[0].format == "inspect")
    source, fields = _select_columns(connection, relation, options, wanted)
    same = [one for one in fields if [*map(str.casefold, fields)].count(one.casefold()) > 1]
    if same and wanted.stays_in_files:
        raise InputError(
            f"names of columns must differ in more than case; got {listed(same)}. Columns "
            "of rows that stay in their files are read by SQL, which ignores case."
        )
    if same or (wanted.needs_rows and not wanted.stays_in_files):
        rows = _read_rows(connection, source, fields)
        if wanted.may_be_binned and not same and len(rows) > MAX_KINDS:
            return BinnableRows(rows, connection.from_arrow(rows)), tuple(fields)
        return rows, tuple(fields)
    selected = ", ".join(f"{sql} AS {quote_name(one)}" for one, sql in fields.items())
    return connection.sql(f"SELECT {selected} FROM {source}"), tuple(fields)


def _check_repeats(
    connection: Any, relation: Relation, wanted: Wanted, *, is_inspect: bool
) -> None:
    """Raise InputError for a log that has several rows of each item: they are not independent."""
    options = {option for option, _ in wanted.columns.values()}
    if {"doc_id", "doc_hash", "filter"} <= {*relation.names}:
        column, why = "filter", "of lm-evaluation-harness has each answer once for each filter"
    elif is_inspect and not options & {"--cluster", "--matched"}:
        column, why = "epoch", "of Inspect has several answers to each item"
    else:
        return
    query = f"SELECT DISTINCT {quote_name(column)} FROM {relation.source} ORDER BY ALL LIMIT 9"
    values = [value for (value,) in connection.execute(query).fetchall()]
    if len(values) > 1:
        first = quote_text(values[0]) if isinstance(values[0], str) else values[0]
        keep = f'Keep one, such as --where "{column} = {first}"'
        more = "" if column == "filter" else "; or pass --cluster id, or --matched"
        raise InputError(f"the log {why} ({listed(values)}). {keep}{more}.")


@contextmanager
def name_files_in_errors(files: Sequence[InputFile], folder: Path) -> Iterator[None]:
    """Turn an error of DuckDB into one sentence with the user's names of files."""
    import duckdb
    import pyarrow as pa

    from fairperm.data.lazy.backends import is_interrupt

    try:
        yield
    except Exception as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from None
        # the library's own error, while it counts, has that of DuckDB as its cause
        found = error.__cause__ if type(error) is FairpermError else error
        if isinstance(found, (duckdb.Error, pa.ArrowException, UnicodeDecodeError)):
            raise InputError(_explain(found, files, folder)) from error
        raise


def _explain(error: BaseException, files: Sequence[InputFile], folder: Path) -> str:
    """Return what is wrong with a file; the text of DuckDB's error is all there is to go by."""
    text = first_line(error)
    if str(folder / "spill") in text:
        return describe_full_folder(folder, text.rpartition(": ")[2])
    for file in files:
        text = text.replace(str(file.path), file.name)
    subject = shown(files[0].name) if len(files) == 1 else "the files"
    where = f"{subject} cannot be read"
    place = text.removeprefix("CSV Error on Line: ")
    for line in map(str.strip, str(error).splitlines()):
        if line.startswith("Expected Number of Columns"):
            expected, got = (one.strip() for one in line.split(":", 1)[1].split("Found:"))
            title = f" {SKIP_HINT}" if expected == "1" else ""
            return f"{where}: line {place} has {got} columns; the header has {expected}.{title}"
        if "unterminated quote" in line:
            return f"{where}: a quote that opens or closes on line {place} is out of place."
        if "nicode" in line or "utf-8" in line.lower():
            return f"{where}: it is not in UTF-8. {ENCODING_HINT}"
        if "invalid state" in line:
            return f"{where} as CSV: line ends may be mixed, or quotes out of place."
        if "maximum line size" in line.lower() or "Parallel CSV Reader" in line:
            return f"{where}: {LONG_LINE}"
    return f"{where}: {text}"


def _read_rows(connection: Any, source: str, fields: Mapping[str, str]) -> Any:
    """Return the rows as an Arrow table; text as codes, not as one Python string per row."""
    import pyarrow as pa

    memory = Memory(connection)
    selected = ", ".join(f"{sql} AS v{i}" for i, sql in enumerate(fields.values()))
    query = f"SELECT {selected} FROM {source}"
    read = getattr(connection.sql(query), "to_arrow_reader", None)
    if read is None:  # an older DuckDB
        read = connection.execute(query).fetch_record_batch
    reader = read(_BATCH)
    codes = pa.dictionary(pa.int32(), pa.string())
    is_text = [
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        for kind in reader.schema.types
    ]
    schema = pa.schema(
        [
            pa.field(one.name, codes if text else one.type)
            for one, text in zip(reader.schema, is_text, strict=True)
        ]
    )
    batches = []
    for batch in reader:
        columns = [
            column.cast(pa.string()).dictionary_encode() if text else column
            for column, text in zip(batch.columns, is_text, strict=True)
        ]
        batches.append(pa.record_batch(columns, schema=schema))
        memory.add(
            batches[-1].nbytes,
            "Rates are counted without keeping rows; for metrics of scores see --score-bins, for "
            "others write a random sample of the rows to a file.",
        )
    table = pa.Table.from_batches(batches, schema).unify_dictionaries()
    return table.rename_columns(list(fields))


def _select_columns(
    connection: Any, relation: Relation, options: ReadOptions, wanted: Wanted
) -> tuple[str, dict[str, str]]:
    """Return the source to select from, and SQL for each wanted column in a plain type."""
    columns = wanted.columns
    places = {}
    if options.sql is None:  # raises for unknown names before anything is read
        places = {name: relation.place(option, name) for name, (option, _) in columns.items()}
        for name, (option, role) in columns.items() if relation.is_text else ():
            if role == types.NUMBER:
                types.check_numbers(
                    connection,
                    relation.source,
                    relation.fields[places[name]],
                    options.missing_words,
                    options.decimal,
                    called=f"{option} (column {shown(name)})",
                )
    if options.sql is None and options.where is None:
        roles = {relation.fields[i]: columns[name][1] for name, i in places.items()}
        fields = _cast_text(connection, relation, roles, options)
        source = relation.source
        kinds = {name: relation.types[i] for name, i in places.items()}
        chosen = {name: fields[relation.fields[i]] for name, i in places.items()}
    else:
        source = _run_sql(connection, relation, options, columns)
        result = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        kinds = {str(row[0]): str(row[1]) for row in result}
        chosen = {}
        for name, (option, _) in columns.items():
            if name not in kinds:
                raise unknown_name(option, "a column that --sql returns", name, kinds)
            chosen[name] = quote_name(name)
    if relation.is_text and options.sql is None and options.where is None:
        return source, chosen
    return source, {
        name: types.cast_to_plain(
            connection,
            source,
            chosen[name],
            kinds[name],
            role=role,
            called=f"{option} (column {shown(name)})",
        )
        for name, (option, role) in columns.items()
    }


def _cast_text(
    connection: Any, relation: Relation, roles: Mapping[str, str], options: ReadOptions
) -> dict[str, str]:
    """Return SQL that casts fields of a text file to the types of their values."""
    if not relation.is_text:
        return {field: field for field in roles}
    missing, decimal = options.missing_words, options.decimal
    return types.infer_types(connection, relation.source, roles, missing, decimal)


def _run_sql(
    connection: Any,
    relation: Relation,
    options: ReadOptions,
    columns: Mapping[str, tuple[str, str]],
) -> str:
    """Return the result of the user's SQL as a source to select from."""
    spoken = f"{options.sql or ''} {options.where or ''}".casefold()
    unclear = relation.ambiguous_names()
    kept = [i for i, name in enumerate(relation.names) if name not in unclear and name]
    for name, (option, _) in columns.items():
        if name in unclear and options.sql is None:
            same = listed(sorted(one for one in unclear if one.casefold() == name.casefold()))
            raise InputError(
                f"{option} is ambiguous in SQL, which ignores case: the data have {same}."
            )
    roles = {
        relation.fields[i]: columns.get(relation.names[i], ("", types.NAME))[1]
        for i in kept
        if relation.names[i] in columns or relation.names[i].casefold() in spoken
    }
    typed = _cast_text(connection, relation, roles, options)
    if kept:
        selected = ", ".join(
            f"{typed.get(sql, sql)} AS {quote_name(name)}"
            for sql, name in ((relation.fields[i], relation.names[i]) for i in kept)
        )
        view = f"SELECT * FROM (SELECT {selected} FROM {relation.source})"
        if options.where is not None:
            view += f" AS data WHERE (\n{check_condition(options.where)}\n)"
        _check_query(connection, "--where" if options.where else "the data", f"DESCRIBE {view}")
        connection.execute(f"CREATE TEMP VIEW data AS {view}")
    elif options.where is not None:
        raise InputError("--where needs --table if the file is a database.")
    if options.sql is None:
        return "data"
    query = check_select(options.sql)
    _check_query(connection, "--sql", f"DESCRIBE {query}")
    return f"(\n{query}\n)"


def _check_query(connection: Any, option: str, query: str) -> None:
    import duckdb

    try:
        connection.execute(query).fetchall()
    except duckdb.Error as error:
        text = first_line(error)
        hint = "Write text in 'single quotes'." if "column" in text and "not found" in text else ""
        raise InputError(f"{option} cannot be run: {text} {hint}".rstrip()) from error
