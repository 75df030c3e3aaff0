"""The script that draws charts in a page (Vega, Vega-Lite and Vega-Embed), and JSON for it."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from markupsafe import Markup

from fairperm._utils.files import write_whole
from fairperm.datasets.store import cache_folder
from fairperm.errors import InputError
from fairperm.hypothesis_tests.results.gaps import json_ready

if TYPE_CHECKING:
    from pathlib import Path

_GLOBALS = "window.vegaEmbed = vegaEmbed;"


@cache
def vega_script() -> str:
    """Return the script; it takes more than a second to make, and is cached on disk."""
    path = cache_folder() / f"vega-{version('vl-convert-python')}-{vega_lite()}.js"
    return _read_cached(path) or _make_script(path)


def vega_lite() -> str:
    """Return the version of Vega-Lite that Altair writes."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def inline_json(value: object) -> Markup:
    """Return JSON that is safe inside a script element: no tag, comment or line can end it."""
    text = json.dumps(json_ready(value), ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704


def _read_cached(path: Path) -> str | None:
    """Return the script in a file if it is whole: the first line is the hash of the others."""
    try:
        digest, _, script = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return script if digest == _digest(script) else None


def _make_script(path: Path) -> str:
    import vl_convert

    bundle = vl_convert.javascript_bundle(_GLOBALS, vega_lite())
    script = re.sub("<(?=/script|!--)", r"\\x3c", bundle, flags=re.IGNORECASE)  # only in strings
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{_digest(script)}\n{script}")
    except (OSError, InputError):  # the cache is optional
        pass
    return script


def _digest(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()
