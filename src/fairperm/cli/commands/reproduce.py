"""``fairperm reproduce``: repeat the paper's studies, and compare our values with its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairperm.cli import options as arg


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="table1, fnr, thresholds, sample-size, theorems, calibration, or all.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.", metavar="DIR")] = Path(
        "fairperm-studies"
    ),
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write the page as Markdown, too.", metavar="FILE", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer data sets: a minute or two.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.", metavar="N")] = 0,
    jobs: arg.Jobs = None,
    debug: arg.Debug = False,
) -> int:
    """Repeat the paper's studies, and write tables, charts and a page about them."""
    from fairperm import studies

    every = names is None or names == ["all"]
    studies.run(
        "all" if every else list(names or ()),
        out,
        markdown=markdown,
        quick=quick,
        seed=seed,
        n_jobs=jobs,
    )
    return 0
