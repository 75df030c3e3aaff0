"""The server of the page: on this machine only, for whoever knows the token in its address."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fairperm._utils.formatting import format_count
from fairperm.app.guard import Guard
from fairperm.app.jobs import Failed, Jobs, Progress
from fairperm.app.look import Source
from fairperm.app.questions import FIELDS, OUTPUTS, QUESTIONS, WORDS, Answer, Form
from fairperm.cli.files.temporary import make_private_folder
from fairperm.errors import FairpermError, InputError
from fairperm.report.page import make_environment

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from starlette.requests import Request

    from fairperm.app.look import Look

HOST = "127.0.0.1"
MAX_UPLOAD_BYTES = 1 << 30
_MAX_FORM_BYTES = 1 << 18
_MAX_TABS, _MAX_FILES, _MAX_RUNS = 40, 4, 12  # the oldest go
_MAX_SHARE_OF_FREE_SPACE = 0.5
_FORGOTTEN_AFTER_S = 150.0  # without a sign of life of the tab
_SWEPT_EVERY_S = 5.0
_EXAMPLE = "compas.csv.gz"
_PRELOADED = (  # before processes are forked; of these, what is not installed is left out
    *("fairperm.app.work", "fairperm.cli.files.loading", "fairperm.cli.files.column_types"),
    *("fairperm.report.page", "fairperm.report.charts", "fairperm.selection.page"),
    *("duckdb", "pyarrow.compute", "scipy.stats", "openpyxl", "pandas"),
)
_LOOK, _RUN = "fairperm.app.work:look_at", "fairperm.app.work:run"
_STATIC = {
    "app.js": ("fairperm.app", "text/javascript"),
    "charts.js": ("fairperm.report", "text/javascript"),
    "style.css": ("fairperm.app", "text/css"),
}
_OPTION = re.compile(r"--([a-z][a-z-]+)")
_GUARD = """
import os, shutil, sys, time
sys.stdin.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.1)
"""


@dataclass(slots=True)
class Opened:
    """A file that a tab works on: where it is, and what it looks like."""

    folder: Path
    name: str
    look: Look | None = None


@dataclass(slots=True)
class Tab:
    """One page in a browser: its files and results, which no other page sees."""

    folder: Path
    files: dict[str, Opened] = field(default_factory=dict)
    runs: dict[str, Path] = field(default_factory=dict)
    seen: float = field(default_factory=time.monotonic)
    n_busy: int = 0

    def drop_oldest(self) -> None:
        """Remove what is more than a tab may keep."""
        for kept, most in ((self.files, _MAX_FILES), (self.runs, _MAX_RUNS)):
            while len(kept) > most:
                gone = kept.pop(next(iter(kept)))
                folder = gone if isinstance(gone, Path) else gone.folder
                shutil.rmtree(folder, ignore_errors=True)


class Page:
    """The page, its tabs and their files, in a folder of its own."""

    def __init__(self, folder: Path, given: Path | None, max_bytes: int = MAX_UPLOAD_BYTES) -> None:
        self.folder, self.given, self.max_bytes = folder, given, max_bytes
        self.jobs = Jobs(*_PRELOADED)
        self.tabs: dict[str, Tab] = {}
        self.templates = make_environment("fairperm.app")
        self.templates.globals |= {"questions": QUESTIONS, "count": format_count, "words": WORDS}
        self.app = Starlette(
            routes=[
                Route("/", self.show),
                Route("/static/{name}", self.send_static),
                Route("/tabs/{tab}", self.touch, methods=["POST"]),
                Route("/tabs/{tab}/closed", self.close, methods=["POST"]),
                Route("/tabs/{tab}/file", self.take_file, methods=["POST"]),
                Route("/tabs/{tab}/look", self.look_again, methods=["POST"]),
                Route("/tabs/{tab}/form", self.redraw, methods=["POST"]),
                Route("/tabs/{tab}/run", self.run, methods=["POST"]),
                Route("/tabs/{tab}/runs/{run}/{name}", self.send_output),
            ],
            exception_handlers={HTTPException: _explain, FairpermError: _explain, Exception: _fail},
        )

    # -- tabs ---------------------------------------------------------------------------------

    async def show(self, request: Request) -> Response:  # noqa: ARG002
        """Return the page, as a new tab."""
        while len(self.tabs) >= _MAX_TABS:
            self.forget(min(self.tabs, key=lambda one: self.tabs[one].seen))
        name = secrets.token_urlsafe(12)
        self.tabs[name] = Tab(self._make_folder(self.folder))
        given = "" if self.given is None else self.given.name
        html = self.templates.get_template("app.html.jinja").render(tab=name, given=given)
        return Response(html, media_type="text/html")

    def forget(self, name: str) -> None:
        """Remove everything of a tab."""
        tab = self.tabs.pop(name, None)
        if tab is not None:
            shutil.rmtree(tab.folder, ignore_errors=True)

    async def sweep(self) -> None:
        """Forget tabs that show no sign of life: their browser is closed."""
        while True:
            await asyncio.sleep(_SWEPT_EVERY_S)
            now = time.monotonic()
            for name, tab in [*self.tabs.items()]:
                if not tab.n_busy and now - tab.seen > _FORGOTTEN_AFTER_S:
                    self.forget(name)

    def _find_tab(self, request: Request) -> Tab:
        tab = self.tabs.get(request.path_params["tab"])
        if tab is None:
            raise HTTPException(410, "The page has lost its data: open the file again.")
        tab.seen = time.monotonic()
        return tab

    async def touch(self, request: Request) -> Response:
        """Note that a tab is still open."""
        self._find_tab(request)
        return Response(status_code=204)

    async def close(self, request: Request) -> Response:
        """Forget a tab that says good-bye."""
        self.forget(request.path_params["tab"])
        return Response(status_code=204)

    # -- files --------------------------------------------------------------------------------

    async def take_file(self, request: Request) -> Response:
        """Take a file that was dropped, the example, or the one that was named at the start."""
        tab = self._find_tab(request)
        folder = self._make_folder(tab.folder)
        which, name = request.query_params.get("which"), request.query_params.get("name", "")
        if which == "given" and self.given is not None:
            opened = Opened(folder, str(self.given))
        elif which == "example":
            example = files("fairperm.datasets").joinpath(_EXAMPLE)
            (folder / _EXAMPLE).write_bytes(example.read_bytes())
            opened = Opened(folder, _EXAMPLE)
        else:
            opened = Opened(folder, clean_name(name))
            try:
                await self._receive(request, folder / opened.name)
            except BaseException:  # the browser may be gone
                shutil.rmtree(folder, ignore_errors=True)
                raise
        key = secrets.token_urlsafe(12)
        tab.files[key] = opened
        tab.drop_oldest()
        return self._stream(tab, self._look(key, opened, {}))

    async def _receive(self, request: Request, path: Path) -> None:
        free = shutil.disk_usage(self.folder).free * _MAX_SHARE_OF_FREE_SPACE
        most, size = min(self.max_bytes, free), 0
        too_large = HTTPException(
            413,
            f"The file is larger than {most / 2**20:,.0f} MB. Start the page with it instead: "
            "fairperm app FILE reads a file where it is.",
        )
        if int(request.headers.get("content-length", 0)) > most:
            raise too_large
        with path.open("xb") as file:
            async for block in request.stream():
                size += len(block)
                if size > most:
                    raise too_large
                file.write(block)
        if not size:
            raise HTTPException(400, "The file is empty.")

    async def look_again(self, request: Request) -> Response:
        """Look at a file again, read in another way."""
        tab, key, opened, form = await self._read_form(request)
        given: dict[str, Any] = {}
        for name in ("table", "encoding", "decimal"):
            if form.get(name) and form[name][0]:
                given[name] = form[name][0]
        if form.get("skip") and form["skip"][0].isdecimal():
            given["skip"] = int(form["skip"][0])
        if "na-asked" in form:
            given["na"] = tuple(form.get("na", ()))
        return self._stream(tab, self._look(key, opened, given))

    async def _look(
        self, key: str, opened: Opened, given: dict[str, Any]
    ) -> AsyncGenerator[dict[str, Any]]:
        folder = self._make_folder(opened.folder)
        source = Source(opened.folder, opened.name)
        async with contextlib.aclosing(self.jobs.run(_LOOK, folder, source, given)) as job:
            async for told in job:
                if isinstance(told, Progress):
                    yield {"done": told.done, "total": told.total}
                elif isinstance(told, Failed):
                    yield {"error": self._say(told.why)}
                else:
                    opened.look = told
                    form = Form({}, told)
                    look = self.templates.get_template("look.html.jinja").render(
                        look=told, form=form
                    )
                    yield {"file": key, "look": look, "form": self._draw(form)}
        shutil.rmtree(folder, ignore_errors=True)

    # -- questions ----------------------------------------------------------------------------

    def _draw(self, form: Form) -> str:
        return self.templates.get_template("form.html.jinja").render(form=form, look=form.look)

    async def redraw(self, request: Request) -> Response:
        """Return the form, with the fields that fit what was chosen."""
        _, _, opened, given = await self._read_form(request)
        return Response(self._draw(Form(given, _need(opened))), media_type="text/html")

    async def run(self, request: Request) -> Response:
        """Answer the question: run the command that the form means."""
        tab, _, opened, given = await self._read_form(request)
        form = Form(given, _need(opened))
        return self._stream(
            tab, self._answer(request.path_params["tab"], opened, form, form.options())
        )

    async def _answer(
        self, name: str, opened: Opened, form: Form, options: list[str]
    ) -> AsyncGenerator[dict[str, Any]]:
        tab = self.tabs[name]
        folder, key = self._make_folder(tab.folder), secrets.token_urlsafe(12)
        source = Source(opened.folder, opened.name)
        about = (source, form.question.command, options, form.look.reading.for_python())
        is_done = False
        try:
            async with contextlib.aclosing(self.jobs.run(_RUN, folder, *about)) as job:
                async for told in job:
                    if isinstance(told, Progress):
                        yield {"done": told.done, "total": told.total}
                    elif isinstance(told, Answer):
                        is_done = True
                        tab.runs[key] = folder
                        tab.drop_oldest()
                        take = self.templates.get_template("take.html.jinja")
                        html = take.render(answer=told, run=key, tab=name)
                        yield {"run": key, "take": html, "seed": told.seed}
                    else:
                        yield {"error": self._say(told.why)}
        finally:
            if not is_done:
                shutil.rmtree(folder, ignore_errors=True)

    async def send_output(self, request: Request) -> Response:
        """Return a file that a run has written."""
        tab = self._find_tab(request)
        folder, name = tab.runs.get(request.path_params["run"]), request.path_params["name"]
        if folder is None or name not in OUTPUTS.values():
            raise HTTPException(404, "This result is no longer here: ask again.")
        if name != "report.html":
            return FileResponse(folder / name, filename=f"fairperm-{name}")
        # the report brings its own policy; it runs apart from the page
        policy = "sandbox allow-scripts allow-modals allow-downloads; frame-ancestors 'none'"
        saved = f"fairperm-{name}" if "save" in request.query_params else None
        headers = {"Content-Security-Policy": policy}
        return FileResponse(folder / name, filename=saved, headers=headers, media_type="text/html")

    # -- shared -------------------------------------------------------------------------------

    async def send_static(self, request: Request) -> Response:
        """Return a script or the styles."""
        name = request.path_params["name"]
        if name == "vega.js":
            from fairperm.report.charts import vega_script

            return Response(vega_script(), media_type="text/javascript")
        if name not in _STATIC:
            raise HTTPException(404, "There is no such file.")
        package, kind = _STATIC[name]
        if name == "style.css":
            names = (("report", "page.css"), ("report", "parts.css"), ("app", "app.css"))
            texts = (_read_template(f"fairperm.{room}", one) for room, one in names)
            return Response("\n".join(texts), media_type=kind)
        return Response(_read_template(package, name), media_type=kind)

    def _say(self, why: str) -> str:
        """Return what went wrong in the page's words, without the private folders of files."""
        private = re.escape(str(self.folder.resolve()))
        return in_page_words(re.sub(rf"{private}/(\w+/)*", "", why))

    def _make_folder(self, parent: Path) -> Path:
        folder = parent / secrets.token_hex(6)
        folder.mkdir(mode=0o700)
        return folder

    async def _read_form(self, request: Request) -> tuple[Tab, str, Opened, dict[str, list[str]]]:
        """Return the tab, its file, and the fields that were filled in."""
        tab = self._find_tab(request)
        body = bytearray()
        async for block in request.stream():
            body += block
            if len(body) > _MAX_FORM_BYTES:
                raise HTTPException(413, "The form is too large.")
        try:
            given = json.loads(body)
            fields = {str(name): [*map(str, one)] for name, one in given["fields"].items()}
            key = str(given["file"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise HTTPException(400, "The form cannot be read.") from None
        if key not in tab.files:
            raise HTTPException(410, "The page has lost its data: open the file again.")
        return tab, key, tab.files[key], fields

    def _stream(self, tab: Tab, messages: AsyncGenerator[dict[str, Any]]) -> Response:
        """Return messages as lines of JSON, as they come; the work ends if nobody listens."""

        async def lines() -> AsyncIterator[str]:
            tab.n_busy += 1
            try:
                async with contextlib.aclosing(messages):
                    async for one in messages:
                        yield json.dumps(one) + "\n"
            finally:
                tab.n_busy -= 1
                tab.seen = time.monotonic()

        return StreamingResponse(lines(), media_type="application/x-ndjson")


def _need(opened: Opened) -> Look:
    if opened.look is None:
        raise HTTPException(409, "The file has not been read yet.")
    return opened.look


def _read_template(package: str, name: str) -> str:
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


async def _explain(request: Request, error: Exception) -> Response:  # noqa: ARG001
    if isinstance(error, HTTPException):
        return PlainTextResponse(str(error.detail), error.status_code)
    return PlainTextResponse(in_page_words(str(error)), 422)


async def _fail(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return PlainTextResponse("This should not have happened. Please try again.", 500)


def clean_name(name: str) -> str:
    r"""Return a name that is a file in its folder and nothing else.

    >>> clean_name("../../etc/passwd"), clean_name(r"C:\data\x.csv"), clean_name("--sql=1.csv")
    ('passwd', 'x.csv', 'sql=1.csv')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(one for one in last if one.isprintable() and one not in '<>:"|?*').strip(" .-")
    stem, dot, ending = plain.rpartition(".")
    while len(plain.encode()) > 200:
        stem = stem[:-1] if dot else ""
        plain = f"{stem}{dot}{ending}" if stem else plain[:50]
    is_settings = plain.casefold() in {"fairperm.toml", "pyproject.toml"}
    return f"file-{plain}" if is_settings or not plain else plain


def in_page_words(text: str) -> str:
    """Return a message of the command line with the names of the page's fields."""
    return _OPTION.sub(lambda found: FIELDS.get(found[1], found[0]), text)


def serve(given: Path | None, *, port: int, opens: bool) -> None:
    """Serve the page until a signal comes; all copies of data are removed at the end."""
    with make_private_folder() as folder, _removed_if_killed(folder), _listen(port) as listening:
        page = Page(folder, given)
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        guard = Guard(page.app, {f"{HOST}:{port}", f"localhost:{port}"}, token)
        print(f"http://{HOST}:{port}/{token}/", flush=True)
        if opens:
            once = secrets.token_urlsafe(
                24
            )  # other users of this machine can see how a browser starts
            guard.once.add(once)
            _open_browser(f"http://{HOST}:{port}/{once}")
        asyncio.run(_serve(page, guard, listening))


async def _serve(page: Page, guard: Guard, listening: socket.socket) -> None:
    config = uvicorn.Config(
        guard,
        log_level="critical",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    sweeping = asyncio.create_task(page.sweep())
    try:
        await uvicorn.Server(config).serve([listening])
    finally:
        sweeping.cancel()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        hint = "--port 0 takes any that is free."
        raise InputError("port", "one that is free on this machine", port, hint) from error


def _open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)


@contextlib.contextmanager
def _removed_if_killed(folder: Path) -> Any:
    """Have a process of its own remove the folder if this one is killed, and cannot."""
    watcher = subprocess.Popen(  # noqa: S603
        [sys.executable, "-I", "-S", "-c", _GUARD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        if watcher.stdin is not None:
            watcher.stdin.close()
        watcher.wait()
