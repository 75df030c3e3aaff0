"""Hooks of mkdocs, which put the pages generated from the program into the site."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.docs_pages import commands_page, metrics_page

if hasattr(KernelManager, "transport_encryption"):  # newer kernels warn if they are without it
    KernelManager.transport_encryption.default_value = "auto"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show a session (with prompts and what was printed) as a session, not as a program."""
    # the signatures of functions are in their texts, below the example
    markdown = re.sub(
        r"(?m)^(::: fairperm\.[a-z_]+)$(?!\n    options:)",
        r"\1\n    options:\n      show_signature: false\n      separate_signature: false",
        markdown,
    )
    markdown = re.sub(r"(?m)^(\s*)```python\n(?=\s*>>> )", r"\1```pycon\n", markdown)
    return re.sub(r"(?m)^ *<BLANKLINE>$", "", markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Let links of notebooks lead to pages, as those of Markdown do."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    return re.sub(r'(href="[^":]+)\.md(?=["#])', r"\1.html", html)


def on_files(files: Any, config: Any) -> Any:
    """Replace the pages that only say they are generated, for readers of the bare repository."""
    pages = {"reference/metrics.md": metrics_page, "reference/command-line.md": commands_page}
    for path, page in pages.items():
        files.remove(files.src_uris[path])
        files.append(File.generated(config, path, content=page()))
    return files
