"""Run studies, print their results and write them into a folder."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fairperm._utils import checks
from fairperm.errors import FairpermError, InputError, InputTypeError
from studies.writing import as_table, write_pages, write_study

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from studies.study import Study, StudyFunction

# A study is imported when it is first run: together they load Numba, Altair and scikit-learn.
_FUNCTIONS = {
    "table1": "paper.table1:table1",
    "fnr": "paper.fnr:fnr",
    "thresholds": "paper.figures:thresholds",
    "sample-size": "paper.figures:sample_size",
    "theorems": "paper.theorems:theorems",
    "calibration": "calibration.study:calibration",
    "small-groups": "calibration.small_groups:small_groups",
    "lending": "lending:lending",
}
NAMES = tuple(_FUNCTIONS)


def get_study(name: str) -> StudyFunction:
    """Return the function that runs a study.

    Parameters
    ----------
    name : str
        One of ``studies.NAMES``.

    Returns
    -------
    callable
        ``study(*, quick, seed, n_jobs, progress)``, which returns a :class:`Study`.

    Examples
    --------
    >>> import studies
    >>> study = studies.get_study("fnr")(quick=True, seed=1, n_jobs=2)  # doctest: +SKIP
    >>> study.row("un-studentized").ours  # doctest: +SKIP
    0.117
    """
    module, function = _FUNCTIONS[checks.choice("name", name, NAMES)].split(":")
    return cast("StudyFunction", getattr(import_module(f"studies.{module}"), function))


def run(
    names: str | Sequence[str] = "all",
    out: str | os.PathLike[str] = "fairperm-studies",
    *,
    markdown: str | os.PathLike[str] | None = None,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> tuple[Study, ...]:
    """Run the paper's studies again, print the paper's values and ours, and write all files.

    Parameters
    ----------
    names : str or list of str
        "all", or some of ``studies.NAMES``.
    out : path
        A folder, created if it does not exist, for a CSV file of each study and of the numbers
        behind its charts, every chart as SVG, PNG and HTML, and ``index.html`` with all results.
        Files of the same names are replaced, each whole or not at all.
    markdown : path, optional
        A file for the page as Markdown, with links to the charts in `out`.
    quick : bool
        Whether to use fewer data sets: one or two minutes instead of about three quarters of an
        hour on two cores.
    seed : int
        The same seed gives the same numbers, for any `n_jobs`.
    n_jobs : int, optional
        Number of threads; -1 for all cores.
    progress : bool, optional
        Whether to show progress bars; by default on a terminal or in a notebook.

    Returns
    -------
    tuple of Study

    Raises
    ------
    InputError
        If a study cannot be run, for example without its data. All other studies are run and
        written first.

    Examples
    --------
    >>> import studies
    >>> found = studies.run(["table1", "fnr"], "paper", quick=True)  # doctest: +SKIP
    """
    chosen = _choose_studies(names)
    folder = _make_folder(out)
    seed = checks.integer("seed", seed, 0, 2**64 - 1)
    threads = checks.jobs(n_jobs)
    checks.switch("progress", progress)
    from rich.console import Console

    console = Console()
    started = datetime.now(UTC)
    chapters, failed = [], {}
    for name in chosen:
        start = time.monotonic()
        try:
            study = get_study(name)(quick=quick, seed=seed, n_jobs=n_jobs, progress=progress)
        except FairpermError as error:
            failed[name] = str(error)
            continue
        chapters.append(write_study(study, folder, time.monotonic() - start))
        console.print(as_table(study))
    when = f"{started:%Y-%m-%d %H:%M} UTC, with --jobs {threads}"
    page = None if markdown is None else Path(markdown)
    write_pages(chapters, failed, folder, page, quick=quick, when=when)
    console.print(f"Written to {folder / 'index.html'}", markup=False, soft_wrap=True)
    if failed:
        errors = "; ".join(f"{name}: {message}" for name, message in failed.items())
        raise InputError(f"Not all studies could be run. {errors}")
    return tuple(chapter.study for chapter in chapters)


def _choose_studies(names: object) -> list[str]:
    """Return the names of the studies to run, in their own order, each once."""
    if isinstance(names, str):
        names = NAMES if names == "all" else [names]
    if not isinstance(names, (list, tuple)) or not names:
        rule = "'all', the name of a study or a list of them"
        raise InputTypeError("names", rule, names)
    chosen = {checks.choice("names", name, NAMES) for name in names}
    return [name for name in NAMES if name in chosen]


def _make_folder(out: str | os.PathLike[str]) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = f"It cannot be created: {error.strerror}."
        raise InputError("out", "a folder", str(folder), hint) from error
    return folder
