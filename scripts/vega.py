"""Write the script that draws a report's charts into the package: ``python -m scripts.vega``.

vl-convert bundles it out of Vega, Vega-Lite and Vega-Embed. A report needs it, and the package does
not need vl-convert for it.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import vl_convert

FOLDER = Path(__file__).parents[1] / "src" / "fairperm" / "report" / "vega"
_GLOBALS = "window.vegaEmbed = vegaEmbed;"


def make_script() -> str:
    """Return the script, below a line that names its parts."""
    language = max(vl_convert.get_vegalite_versions(), key=_order)
    parts = (
        f"Vega {vl_convert.get_vega_version()}, Vega-Lite {language}, Vega-Embed "
        f"{vl_convert.get_vega_embed_version()}, bundled by vl-convert-python "
        f"{version('vl-convert-python')}; licences in LICENSE.txt"
    )
    bundle = vl_convert.javascript_bundle(_GLOBALS, language)
    script = re.sub("<(?=/script|!--)", r"\\x3c", bundle, flags=re.IGNORECASE)  # only in strings
    return f"/* {parts} */\n{script.strip()}\n"


def _order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


if __name__ == "__main__":
    (FOLDER / "vega.js").write_text(make_script(), encoding="utf-8")
