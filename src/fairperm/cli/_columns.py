"""From a command's options to the columns that its test reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm.errors import InputError, did_you_mean, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairperm.cli._reading import Loaded


def reading(
    params: Mapping[str, Any],
    metrics: Sequence[str],
    *,
    with_hashes: bool,
    rows: bool = False,
) -> Loaded:
    """Read what the options of a command name."""
    from fairperm._options import choice
    from fairperm._progress import waiting
    from fairperm.cli._reading import ReadOptions, Wanted, load
    from fairperm.cli._text_files import MISSING

    kinds = [metric_of(name) for name in metrics]
    label, prediction, score = (params.get(name) for name in ("label", "prediction", "score"))
    groups = params.get("group") or ()
    if not label:
        raise InputError("--label must be given: the column of what is true.")
    if not groups:
        raise InputError("--group must be given: the column of a protected attribute.")
    if not prediction and not score and any(set(one.columns) - {"y_true"} for one in kinds):
        raise InputError(
            "--prediction or --score must be given: the column of what the model says."
        )
    of_table = all(one.kind in {"binary", "labels", "classes"} for one in kinds)
    uses_score = score is not None and (not of_table or prediction is None)
    wanted = Wanted(
        label=label,
        prediction=prediction,
        score=score if uses_score else None,
        groups=tuple(groups) if isinstance(groups, (list, tuple)) else (groups,),
        controls=tuple(params.get("control") or ()),
        cluster=params.get("cluster"),
        weight=params.get("weight"),
        cut_at=float(params.get("threshold", 0.5)),
        rows=rows or not of_table or bool(params.get("cluster") or params.get("weight")),
        drop_missing=choice("missing", params.get("missing", "error"), ("error", "drop")) == "drop",
    )
    options = ReadOptions(
        table=params.get("table"),
        sql=params.get("sql"),
        where=params.get("where"),
        delimiter=params.get("delimiter"),
        encoding=params.get("encoding"),
        missing_words=tuple(dict.fromkeys(("", *params["na"]))) if params.get("na") else MISSING,
    )
    chosen = params.get("format_")
    with waiting("reading", False if params.get("quiet") else None):
        return load(
            params.get("files") or [],
            None if chosen is None else chosen.value,
            options,
            wanted,
            with_hashes=with_hashes,
        )


def values_of(loaded: Loaded, column: str | None, text: str | None) -> object:
    """Return the value that is meant by a text, or None if there is none."""
    return None if text is None or column is None else loaded.value(column, text)


def metric_of(name: str) -> Any:
    """Return the metric of this name."""
    from fairperm.metrics import _BY_ALIAS, get_metric, metric_names

    try:
        return get_metric(name)
    except InputError:
        hint = did_you_mean(name, [*metric_names(), *_BY_ALIAS])
        rule = "one that `fairperm metrics` lists"
        raise InputError(f"--metric must be {rule}; got {shown(name)}. {hint}".rstrip()) from None
