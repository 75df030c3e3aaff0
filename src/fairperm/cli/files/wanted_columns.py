"""From a command's options to the columns that its test needs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from fairperm.cli import common
from fairperm.errors import InputError, did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairperm.cli.files.loading import LoadedData

_OUTPUTS = ("report", "json", "csv", "markdown")


@contextmanager
def read_columns(
    params: Mapping[str, Any],
    metrics: Sequence[str],
    *,
    with_hashes: bool,
    rows: bool = False,
) -> Iterator[LoadedData]:
    """Read the columns that the options of a command name; ``rows`` asks for every row."""
    from fairperm._utils.checks import choice
    from fairperm._utils.progress import waiting
    from fairperm.cli.files.loading import WantedColumns, load
    from fairperm.cli.files.relation import ReadOptions
    from fairperm.cli.files.text import MISSING

    if not params.get("files"):
        raise InputError("FILE must be given: a file, a glob, or '-' for standard input.")
    kinds = [find_metric(name) for name in metrics]
    label, prediction, score = (params.get(name) for name in ("label", "prediction", "score"))
    groups = params.get("group") or ()
    if not label:
        raise InputError(
            "--label must be given: the column of true labels. If there are only predictions, pass "
            "them as --label with --metric base_rate."
        )
    if not groups:
        raise InputError("--group must be given: the column of a protected attribute.")
    if not prediction and not score and any(set(one.columns) - {"y_true"} for one in kinds):
        raise InputError("--prediction or --score must be given: a column of the model's output.")
    can_count = all(one.kind.is_categorical for one in kinds)
    uses_score = score is not None and (not can_count or prediction is None)
    wanted = WantedColumns(
        label=label,
        prediction=prediction,
        score=score if uses_score else None,
        groups=tuple(groups) if isinstance(groups, (list, tuple)) else (groups,),
        controls=tuple(params.get("control") or ()),
        cluster=params.get("cluster"),
        weight=params.get("weight"),
        needs_rows=rows or not can_count or bool(params.get("cluster") or params.get("weight")),
        stays_in_files=any(params.get(one) is not None for one in ("score_bins", "sample_rows")),
        all_numbers=params.get("sample_rows") is not None,
    )
    options = ReadOptions(
        table=params.get("table"),
        sql=params.get("sql"),
        where=params.get("where"),
        delimiter=params.get("delimiter"),
        decimal=choice("decimal", params.get("decimal", "."), (".", ",")),
        encoding=params.get("encoding"),
        missing_words=tuple(dict.fromkeys(("", *params["na"]))) if params.get("na") else MISSING,
    )
    chosen = params.get("format_")
    with ExitStack() as stack:
        with waiting("reading", False if params.get("quiet") else None):
            loaded = stack.enter_context(
                load(
                    params["files"],
                    None if chosen is None else str(chosen),
                    options,
                    wanted,
                    outputs={f"--{one}": str(params[one]) for one in _OUTPUTS if params.get(one)},
                    with_hashes=with_hashes,
                )
            )
        yield loaded


def find_value(loaded: LoadedData, column: str | None, text: str | None) -> object:
    """Return the value that a text from the user means, or None without a text."""
    return None if text is None or column is None else loaded.find_value(column, text)


def find_stratum_weights(
    loaded: LoadedData, controls: Sequence[str] | None, given: Sequence[str] | None
) -> dict[Any, float] | None:
    """Return the weights of strata, given as VALUE=NUMBER."""
    if not given:
        return None
    if not controls:
        raise InputError("--stratum-weights needs --control, the column of strata.")
    known: dict[str, list[Any]] = {}
    for values in loaded.distinct_rows(controls):
        stratum = values if len(controls) > 1 else values[0]
        known.setdefault(",".join(map(str, values)), []).append(stratum)
    found: dict[Any, float] = {}
    for text, weight in common.parse_pairs("--stratum-weights", given, "VALUE=NUMBER").items():
        meant = known.get(text, [])
        if len(meant) != 1:
            rule = f"VALUE=NUMBER with strata of --control ({listed(sorted(known))})"
            hint = "Several strata have this name." if meant else did_you_mean(text, known)
            raise InputError("--stratum-weights", rule, text, hint)
        found[meant[0]] = weight
    return found


def find_metric(name: str, option: str = "--metric") -> Any:
    """Return the metric of this name."""
    from fairperm.metrics.registry import get_metric, metric_names

    try:
        return get_metric(name)
    except InputError:
        aliases = (alias for one in metric_names() for alias in get_metric(one).aliases)
        hint = did_you_mean(name, [*metric_names(), *aliases])
        raise InputError(option, "one that `fairperm metrics` lists", name, hint) from None
