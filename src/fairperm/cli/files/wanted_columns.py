"""From a command's options to the columns that its test reads."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from fairperm.cli import common as running
from fairperm.errors import InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairperm.cli.files.loading import Loaded


_OUTPUTS = ("report", "json", "csv", "markdown")


@contextmanager
def reading(
    params: Mapping[str, Any],
    metrics: Sequence[str],
    *,
    with_hashes: bool,
    rows: bool = False,
) -> Iterator[Loaded]:
    """Read what the options of a command name."""
    from fairperm._utils.checks import choice
    from fairperm._utils.progress import waiting
    from fairperm.cli.files.fetching import Wanted
    from fairperm.cli.files.loading import load
    from fairperm.cli.files.relation import ReadOptions
    from fairperm.cli.files.text import MISSING
    from fairperm.data.arguments import parse_threshold

    if not params.get("files"):
        raise InputError("FILE must be given: a file, a glob, or '-' for standard input.")
    kinds = [metric_of(name) for name in metrics]
    label, prediction, score = (params.get(name) for name in ("label", "prediction", "score"))
    groups = params.get("group") or ()
    if not label:
        raise InputError(
            "--label must be given: the column of what is true. Where there are only predictions, "
            "give them as --label and take --metric base_rate."
        )
    if not groups:
        raise InputError("--group must be given: the column of a protected attribute.")
    if not prediction and not score and any(set(one.columns) - {"y_true"} for one in kinds):
        raise InputError(
            "--prediction or --score must be given: the column of what the model says."
        )
    of_table = all(one.kind.is_categorical for one in kinds)
    uses_score = score is not None and (not of_table or prediction is None)
    wanted = Wanted(
        label=label,
        prediction=prediction,
        score=score if uses_score else None,
        groups=tuple(groups) if isinstance(groups, (list, tuple)) else (groups,),
        controls=tuple(params.get("control") or ()),
        cluster=params.get("cluster"),
        weight=params.get("weight"),
        cut_at=parse_threshold(params.get("threshold")),
        rows=rows or not of_table or bool(params.get("cluster") or params.get("weight")),
        drop_missing=choice("missing", params.get("missing", "error"), ("error", "drop")) == "drop",
        lazy=params.get("score_bins") is not None or params.get("sample_rows") is not None,
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


def values_of(loaded: Loaded, column: str | None, text: str | None) -> object:
    """Return the value that is meant by a text, or None if there is none."""
    return None if text is None or column is None else loaded.value(column, text)


def weights_of(
    loaded: Loaded, controls: Sequence[str] | None, given: Sequence[str] | None
) -> dict[Any, float] | None:
    """Return the weights of strata, from VALUE=NUMBER, by the values that are meant."""
    if not given:
        return None
    if not controls:
        raise InputError("--stratum-weights must come with --control, the column of the strata.")
    known: dict[str, list[Any]] = {}
    for values in loaded.combinations(controls):
        stratum = values if len(controls) > 1 else values[0]
        known.setdefault(",".join(map(str, values)), []).append(stratum)
    found: dict[Any, float] = {}
    for text, weight in running.pairs("--stratum-weights", given, "VALUE=NUMBER").items():
        meant = known.get(text, [])
        if len(meant) != 1:
            rule = f"VALUE=NUMBER with strata of --control ({listed(known)})"
            hint = "Several are called so." if meant else did_you_mean(text, known)
            raise InputError(
                f"--stratum-weights must be {rule}; got {shown(text)}. {hint}".rstrip()
            )
        found[meant[0]] = weight
    return found


def metric_of(name: str, option: str = "--metric") -> Any:
    """Return the metric of this name."""
    from fairperm.metrics.registry import get_metric, metric_names

    try:
        return get_metric(name)
    except InputError:
        aliases = (alias for one in metric_names() for alias in get_metric(one).aliases)
        hint = did_you_mean(name, [*metric_names(), *aliases])
        rule = "one that `fairperm metrics` lists"
        raise InputError(f"{option} must be {rule}; got {shown(name)}. {hint}".rstrip()) from None
