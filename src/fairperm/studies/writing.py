"""A study's files (CSV, SVG, PNG, HTML), the page about all of them, and tables for a terminal."""

from __future__ import annotations

import base64
import csv
import html
import io
import math
import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairperm._utils.files import write_whole
from fairperm.report.vega import inline_json, vega_lite, vega_script

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jinja2 import Environment
    from rich.table import Table

    from fairperm.studies.study import Study

_SCALE = 2  # of pixels in PNG files, for screens of today
_PARTS = ("fairperm", "numpy", "scipy", "numba", "scikit-learn", "altair")
_AGREES = {True: "yes", False: "no", None: "–"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """What the page shows of one study."""

    study: Study
    seconds: float
    files: tuple[str, ...]
    pictures: Mapping[str, str]  # the source of each chart's image, by the chart's name

    @property
    def agreement(self) -> str:
        """Say how many values agree, of those that there is something to agree with."""
        judged = [row.agrees for row in self.study.rows if row.agrees is not None]
        return f"{sum(judged)} of {len(judged)}" if judged else "–"

    @property
    def highlights(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """Return the header and the lines of the tables that are shown, as text."""
        return {
            name: (
                list(self.study.tables[name]),
                [
                    [_cell(cell) for cell in line]
                    for line in zip(*self.study.tables[name].values(), strict=True)
                ],
            )
            for name in self.study.highlights
        }


def write_study(study: Study, folder: Path, seconds: float) -> Chapter:
    """Write the files of a study."""
    rows = [row.cells() for row in study.rows]
    contents: dict[str, str | bytes] = {
        f"{study.name}.csv": _csv(rows[0] if rows else (), (row.values() for row in rows))
    }
    for name, columns in study.tables.items():
        lines = zip(*columns.values(), strict=True)
        contents[f"{study.name}-{name}.csv"] = _csv(columns, lines)
    pictures = {}
    for name, specification in study.charts.items():
        svg, png = _drawn(specification)
        stem = f"{study.name}-{name}"
        page = _render("chart.html.jinja", title=study.title, specification=specification)
        contents |= {f"{stem}.svg": svg, f"{stem}.png": png, f"{stem}.html": page}
        pictures[name] = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    for name, content in contents.items():
        write_whole(folder / name, content)
    return Chapter(study=study, seconds=seconds, files=tuple(contents), pictures=pictures)


def write_page(
    chapters: Sequence[Chapter], failed: Mapping[str, str], folder: Path, *, quick: bool, when: str
) -> None:
    """Write the page about all studies, and what draws the charts' own pages."""
    if any(chapter.pictures for chapter in chapters):
        write_whole(folder / "vega.js", vega_script())
    page = _render(
        "index.html.jinja",
        chapters=chapters,
        failed=failed,
        quick=quick,
        facts={"run": when, **_machine()},
    )
    write_whole(folder / "index.html", page)


def write_markdown(
    chapters: Sequence[Chapter],
    failed: Mapping[str, str],
    file: Path,
    folder: Path,
    *,
    quick: bool,
    when: str,
) -> None:
    """Write the same as Markdown, which shows the charts that the folder has."""
    page = _render(
        "page.md.jinja",
        chapters=chapters,
        failed=failed,
        quick=quick,
        facts={"run": when, **_machine()},
        folder=Path(os.path.relpath(folder.resolve(), file.resolve().parent)).as_posix(),
    )
    write_whole(file, page)


def as_table(study: Study) -> Table:
    """Return a study's rows for a terminal."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(study.title), title_justify="left")
    for name in ("quantity", "paper", "ours", "99 % interval", "agrees", "remark"):
        is_number = name in {"paper", "ours", "99 % interval"}
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
    for row in study.rows:
        cells = (told(row.paper), told(row.ours), _interval(row.interval), _AGREES[row.agrees])
        table.add_row(escape(row.quantity), *cells, escape(row.remark))
    return table


def told(value: float | None) -> str:
    """Return a number as text: four decimals, or four digits if it is large or tiny."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.4f}" if value == 0 or 1e-4 <= abs(value) < 10 else f"{value:.4g}"


def _cell(value: object) -> str:
    """Return a table's cell as text."""
    if value is None or isinstance(value, float):
        return told(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{told(interval[0])} to {told(interval[1])}"


def _csv(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _drawn(specification: dict[str, Any]) -> tuple[str, bytes]:
    import vl_convert

    language = vega_lite()
    svg: str = vl_convert.vegalite_to_svg(specification, language)
    png: bytes = vl_convert.vegalite_to_png(specification, language, scale=_SCALE)
    return svg, png


def _machine() -> dict[str, str]:
    """Return what the numbers were computed with."""
    parts = ", ".join(f"{name} {version(name)}" for name in _PARTS)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"versions": f"{python}, {parts}", "machine": machine}


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fairperm.studies"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"told": told, "interval": _interval, "json": inline_json}
    environment.filters["cell"] = _in_markdown
    environment.globals["agrees"] = _AGREES
    return environment


def _in_markdown(text: object) -> Any:
    """Return text that stands in a line, or a table's cell, of Markdown as it is."""
    from markupsafe import Markup

    line = html.escape(" ".join(str(text).split()), quote=False)
    return Markup(line.replace("|", "\\|").replace("*", "\\*"))  # noqa: S704
