"""Results as data frames of the user's library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from fairperm._utils.checks import choice
from fairperm.data.columns import CountedRows, as_narwhals
from fairperm.errors import InputError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANY = (nw.DataFrame, nw.LazyFrame, nw.Series)
LIBRARIES = ("pandas", "polars", "pyarrow")


def library_of(data: object) -> str | None:
    """Return the library of a frame or column; None for anything else."""
    if data is None or isinstance(data, CountedRows):
        return None
    frame = as_narwhals("data", data)
    return str(frame.implementation.value) if isinstance(frame, _ANY) else None


def frame_of(columns: Mapping[str, Any], library: str | None, default: str | None) -> Any:
    """Return a frame of the library, by default that of the data or else pandas."""
    chosen = default if default in LIBRARIES else "pandas"
    if library is not None:
        chosen = choice("library", library, LIBRARIES)
    try:
        return nw.from_dict(dict(columns), backend=chosen).to_native()  # type: ignore[arg-type]
    except ModuleNotFoundError as error:
        hint = f"Install {chosen}, name one of {listed(LIBRARIES)}, or use to_dict()."
        rule = "a data-frame library that is installed"
        raise InputError("library", rule, chosen, hint) from error
