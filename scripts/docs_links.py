"""Check links of the built site (``docs_links.py site``), or of Markdown (``docs_links.py .``).

Every link leads somewhere, and the site loads nothing from elsewhere. Readers of the bare repo
follow links from file to file, where headings have the names that GitHub and the like give them.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}
_LINK = re.compile(r"""\]\(([^()\s]+)\)|(?:src|srcset|href)="([^"]+)\"""")
_FENCED = re.compile(r"(?ms)^[ ]*(```+|~~~+).*?^[ ]*\1[ ]*$")
_INLINE = re.compile(r"`[^`\n]+`")
_HEADING = re.compile(r"(?m)^#+ (.+)$")
_GENERATED = "is generated"
_FOREIGN = re.compile(r"url\(\s*['\"]?(https?:)?//|@import\s+(url\()?['\"]?(https?:)?//")


class _Page(HTMLParser):
    """The links of a page, and the places in it that links can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str, str]] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the tag links to and what it is called."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "link" and given.get("rel") in {"canonical", "next", "prev"}:
            return
        for name in ("href", "src"):
            if name in given:
                self.links.append((tag, name, given[name]))


def problems(site: Path) -> list[str]:
    """Return what is wrong with the site, one line each."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no pages"]
    for path, page in pages.items():
        for tag, name, link in page.links:
            wrong = _wrong(path, tag, name, link, pages, site)
            if wrong:
                found.append(f"{path.relative_to(site)}: <{tag} {name}={link!r}>: {wrong}")
    styles = sorted(site.rglob("*.css"))
    foreign = [path for path in styles if _FOREIGN.search(path.read_text("utf-8"))]
    return found + [f"{path.relative_to(site)}: loads from another host" for path in foreign]


def _wrong(
    path: Path, tag: str, name: str, link: str, pages: dict[Path, _Page], site: Path
) -> str | None:
    parts = urlsplit(link)
    if parts.scheme in {"data", "mailto", "javascript"}:
        return None
    if parts.scheme or parts.netloc:
        return "loaded from another host" if (tag, name) in _LOADED else None
    if path.name == "404.html" and parts.path.startswith("/"):
        target = site / unquote(parts.path).lstrip("/")  # it is shown at any address
    else:
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "no such file"
    if target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "no such place on that page"
    return None


def repository_problems(root: Path) -> list[str]:
    """Return the links of Markdown files that lead nowhere in the repository, one line each."""
    found = []
    for path in _markdown_files(root):
        for link in _LINK.findall(_INLINE.sub("", _FENCED.sub("", path.read_text("utf-8")))):
            parts = urlsplit(next(filter(None, link)))
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.relative_to(root)}: {parts.path}: no such file")
            elif target.suffix == ".md" and parts.fragment and not _has(target, parts.fragment):
                found.append(f"{path.relative_to(root)}: {parts.geturl()}: no such heading")
    return found


def _markdown_files(root: Path) -> list[Path]:
    folders = (root / name for name in ("docs", "src", "benchmarks", "studies", ".github"))
    return sorted([*root.glob("*.md"), *(path for one in folders for path in one.rglob("*.md"))])


def _has(page: Path, anchor: str) -> bool:
    text = page.read_text("utf-8")
    if _GENERATED in text:  # the site has the whole page
        return True
    headings = _HEADING.findall(_FENCED.sub("", text))
    return anchor in {_heading_anchor(one) for one in headings}


def _heading_anchor(heading: str) -> str:
    shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    is_repository = (folder / "mkdocs.yml").exists()
    wrong = repository_problems(folder) if is_repository else problems(folder)
    print("\n".join(wrong) or f"{folder.name}: every link leads somewhere.")
    sys.exit(bool(wrong))
