"""Write the files of studies (CSV, SVG, PNG, HTML), their page, and tables for a terminal."""

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
from fairperm._utils.formatting import NONE, neutralize
from fairperm.report.charts import inline_json, vega_script
from fairperm.report.page import make_environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jinja2 import Environment
    from rich.table import Table

    from studies.study import Study

_SCALE = 2  # PNG pixels per CSS pixel
_PARTS = ("fairperm", "numpy", "scipy", "numba", "scikit-learn", "altair")
_AGREES = {True: "yes", False: "no", None: NONE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One study on the page."""

    study: Study
    seconds: float
    files: tuple[str, ...]
    pictures: Mapping[str, str]  # the source of each chart's image, by the chart's name

    @property
    def agreement(self) -> str:
        """How many values agree, of those with an expected value."""
        judged = [row.agrees for row in self.study.rows if row.agrees is not None]
        return f"{sum(judged)} of {len(judged)}" if judged else "–"

    @property
    def highlights(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """Header and rows of the tables that the page shows, as text."""
        return {
            name: (
                list(self.study.tables[name]),
                [
                    [_format_cell(cell) for cell in row]
                    for row in zip(*self.study.tables[name].values(), strict=True)
                ],
            )
            for name in self.study.highlights
        }


def write_study(study: Study, folder: Path, seconds: float) -> Chapter:
    """Write the files of a study."""
    rows = [row.cells() for row in study.rows]
    contents: dict[str, str | bytes] = {
        f"{study.name}.csv": _format_csv(rows[0] if rows else (), (row.values() for row in rows))
    }
    for name, columns in study.tables.items():
        lines = zip(*columns.values(), strict=True)
        contents[f"{study.name}-{name}.csv"] = _format_csv(columns, lines)
    pictures = {}
    for name, specification in study.charts.items():
        svg, png = _draw_chart(specification)
        stem = f"{study.name}-{name}"
        page = _render("chart.html.jinja", title=study.title, specification=specification)
        contents |= {f"{stem}.svg": svg, f"{stem}.png": png, f"{stem}.html": page}
        pictures[name] = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    for name, content in contents.items():
        write_whole(folder / name, content)
    return Chapter(study=study, seconds=seconds, files=tuple(contents), pictures=pictures)


def write_pages(
    chapters: Sequence[Chapter],
    failed: Mapping[str, str],
    folder: Path,
    markdown: Path | None,
    *,
    quick: bool,
    when: str,
) -> None:
    """Write the page with all studies, also as Markdown with links to the charts in the folder."""
    if any(chapter.pictures for chapter in chapters):
        write_whole(folder / "vega.js", vega_script())
    facts = {"run": when, **_describe_machine()}
    values = {"chapters": chapters, "failed": failed, "quick": quick, "facts": facts}
    write_whole(folder / "index.html", _render("index.html.jinja", **values))
    if markdown is not None:
        to_folder = Path(os.path.relpath(folder.resolve(), markdown.resolve().parent)).as_posix()
        write_whole(markdown, _render("page.md.jinja", **values, folder=to_folder))


def as_table(study: Study) -> Table:
    """Return a study's rows for a terminal."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(study.title), title_justify="left")
    for name in ("quantity", "paper", "ours", "99 % interval", "agrees", "remark"):
        is_number = name in {"paper", "ours", "99 % interval"}
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
    for row in study.rows:
        numbers = format_value(row.paper), format_value(row.ours), _format_limits(row.interval)
        table.add_row(escape(row.quantity), *numbers, _AGREES[row.agrees], escape(row.remark))
    return table


def format_value(value: float | None) -> str:
    """Return a number with four decimals, as the paper does, or four digits if large or tiny."""
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.4f}" if value == 0 or 1e-4 <= abs(value) < 10 else f"{value:.4g}"


def _format_cell(value: object) -> str:
    if value is None or isinstance(value, float):
        return format_value(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _format_limits(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else " to ".join(map(format_value, interval))


def _format_csv(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(neutralize, header))
    writer.writerows(map(neutralize, row) for row in rows)
    return text.getvalue()


def _draw_chart(specification: dict[str, Any]) -> tuple[str, bytes]:
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(specification)
    png: bytes = vl_convert.vegalite_to_png(specification, scale=_SCALE)
    return svg, png


def _describe_machine() -> dict[str, str]:
    """Return the versions and the machine that the numbers were computed with."""
    parts = ", ".join(f"{name} {version(name)}" for name in _PARTS)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"versions": f"{python}, {parts}", "machine": machine}


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def _environment() -> Environment:
    environment = make_environment("studies")
    environment.filters |= {
        "value": format_value,
        "interval": _format_limits,
        "json": inline_json,
        "cell": _escape_markdown,
    }
    environment.globals["agrees"] = _AGREES
    return environment


def _escape_markdown(text: object) -> Any:
    """Return text for one line, or a table's cell, of Markdown."""
    from markupsafe import Markup

    line = html.escape(" ".join(str(text).split()), quote=False)
    return Markup(line.replace("|", "\\|").replace("*", "\\*"))  # noqa: S704
