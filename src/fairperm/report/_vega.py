"""The libraries that draw charts in a page: Vega, Vega-Lite and Vega-Embed as one script."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from fairperm._files import write_whole
from fairperm.datasets._store import cache_folder
from fairperm.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_GLOBALS = "window.vegaEmbed = vegaEmbed;"


@cache
def vega_script() -> str:
    """Return the script. It takes more than a second to make, so it is kept for the next time."""
    import altair as alt

    vega_lite = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    name = f"vega-{version('vl-convert-python')}-{vega_lite}.js"
    path = cache_folder() / name
    return _kept(path) or _made(vega_lite, path)


def _kept(path: Path) -> str | None:
    """Return what the file has, if it is whole: its first line is the hash of the others."""
    try:
        digest, _, script = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return script if digest == _digest(script) else None


def _made(vega_lite: str, path: Path) -> str:
    import vl_convert

    bundle = vl_convert.javascript_bundle(_GLOBALS, vega_lite)
    script = re.sub("<(?=/script|!--)", r"\\x3c", bundle, flags=re.IGNORECASE)  # only in strings
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{_digest(script)}\n{script}")
    except (OSError, InputError):  # a home that cannot be written to is no reason to stop
        pass
    return script


def _digest(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()
