"""``fairperm reproduce``: the paper's studies again, with the paper's values beside ours."""

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
    out: Annotated[Path, typer.Option(help="The folder for what is found.", metavar="DIR")] = Path(
        "fairperm-studies"
    ),
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write the page as Markdown too.", metavar="FILE", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer data sets: a minute or two.")
    ] = False,
    seed: Annotated[int, typer.Option(help="One seed gives the same numbers.", metavar="N")] = 0,
    jobs: arg.Jobs = None,
    debug: arg.Debug = False,
) -> int:
    """Run the paper's studies again, and write tables, charts and a page about them."""
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
