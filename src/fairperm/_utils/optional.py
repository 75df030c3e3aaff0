"""Packages that only a part of fairperm needs, and the command that installs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairperm.errors import MissingPartError

EXTRA_OF = {  # the modules that are imported, by the extra that installs them
    **dict.fromkeys(("altair", "vl_convert"), "plots"),
    **dict.fromkeys(("duckdb", "pyarrow"), "files"),
    **dict.fromkeys(("joblib", "numba"), "fast"),
    **dict.fromkeys(("starlette", "uvicorn"), "app"),
    "mlflow": "mlflow",
    "openpyxl": "excel",
    "pyspark": "spark",
}


@contextmanager
def optional(what: str) -> Iterator[None]:
    """Raise MissingPartError if what is imported here is an optional package that is missing."""
    # ``what``, which needs it, begins the sentence: "A chart"
    try:
        yield
    except ModuleNotFoundError as error:
        missing = describe_missing(error, what)
        if missing is None:
            raise
        raise missing from error


def describe_missing(error: BaseException, what: str) -> MissingPartError | None:
    """Return the error that names the command to run; None if no optional package is missing."""
    name = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or name not in EXTRA_OF:
        return None
    return MissingPartError(
        f"{what} needs {name}, which is not installed: {install_command(EXTRA_OF[name])}"
    )


def install_command(extra: str) -> str:
    """Return the command that installs an optional part.

    >>> install_command("plots")
    "pip install 'fairperm[plots]'"
    """
    return f"pip install 'fairperm[{extra}]'"
