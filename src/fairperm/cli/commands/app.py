"""``fairperm app``: the page, an audit without code on one's own machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairperm._utils.optional import optional
from fairperm.cli.command import command
from fairperm.errors import InputError

if TYPE_CHECKING:
    import click


@command("app", "file@app no_open port debug", example="fairperm app applicants.xlsx")
def app(ctx: click.Context) -> int:
    """Open a page in the browser that audits a file, without code and without a network.

    It answers on this machine only. Ctrl-C ends it, and removes its copies of data.
    """
    with optional("The page"):
        from fairperm.app.server import serve

    file, given = ctx.params["file"], None
    if file is not None:
        given = Path(file).resolve()
        if not given.is_file():
            raise InputError("FILE", "a file that exists", file)
    serve(given, port=ctx.params["port"], opens=not ctx.params["no_open"])
    return 0
