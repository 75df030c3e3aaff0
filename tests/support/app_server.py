"""The page as a process of its own, and what a browser says to it, without a browser."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from tests.support.commands import COMMAND, QUIET

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Response(NamedTuple):
    """An answer of the server."""

    status: int
    headers: dict[str, str]
    content: bytes


class AppServer:
    """A server whose folder is its own, so that what it leaves can be seen."""

    def __init__(self, folder: Path, *arguments: object, **environment: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [COMMAND, "app", "--no-open", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=QUIET | {"TMPDIR": str(folder)} | environment,
            cwd=folder,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.communicate()
        self.host = urlsplit(self.address).netloc
        self.path = urlsplit(self.address).path

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Return the answer to a request as the page makes it, but for some headers."""
        sent = {"Host": self.host, "Origin": f"http://{self.host}", **(headers or {})}
        with contextlib.closing(http.client.HTTPConnection(self.host, timeout=120)) as connection:
            connection.request(method, path, body, {x: one for x, one in sent.items() if one})
            found = connection.getresponse()
            return Response(found.status, dict(found.headers), found.read())

    def get(self, path: str) -> bytes:
        """Return a page or a file."""
        found = self.request("GET", self.path + path)
        assert found.status == 200, found.content
        return found.content

    def open_tab(self) -> AppTab:
        """Return a new tab."""
        (name,) = re.findall(r'data-tab="([\w-]+)"', self.get("").decode())
        return AppTab(self, name)

    def end(self, with_signal: int = signal.SIGTERM) -> tuple[int, str]:
        """Return the exit code and what was printed after the address."""
        self.process.send_signal(with_signal)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out + err

    def leftovers(self) -> list[str]:
        """Return the files that are in its folder."""
        return [str(one) for one in self.folder.rglob("*") if one.is_file()]


@dataclass
class AppTab:
    """One page in a browser."""

    server: AppServer
    name: str
    file: str = ""
    form: str = ""
    look: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)

    def post(self, path: str, body: Any = b"") -> Response:
        return self.server.request("POST", f"{self.server.path}tabs/{self.name}{path}", body)

    def ask(self, path: str, body: Any = b"") -> dict[str, Any]:
        """Return the last line of the answer; of a refusal, its sentence as an error."""
        response = self.post(path, body)
        text = response.content.decode()
        if response.status != 200:
            return {"error": text, "status": response.status}
        last: dict[str, Any] = json.loads(text.splitlines()[-1])
        return last

    def open(self, name: str, content: bytes) -> dict[str, Any]:
        """Drop a file."""
        return self._show(self.ask(f"/file?name={quote(name, safe='')}", content))

    def open_example(self) -> dict[str, Any]:
        return self._show(self.ask("/file?which=example"))

    def _show(self, found: dict[str, Any]) -> dict[str, Any]:
        self.file, self.form = found.get("file", ""), found.get("form", "")
        self.look, self.fields = found.get("look", ""), read_fields(self.form)
        return found

    def choose(self, **fields: Any) -> None:
        """Fill in fields, and take the form that the server draws."""
        self.fields |= {name.replace("__", "-"): [*map(str, one)] for name, one in fields.items()}
        response = self.post("/form", self._body())
        self.form = response.content.decode()
        assert response.status == 200, self.form
        self.fields = read_fields(self.form)

    def run(self) -> dict[str, Any]:
        """Ask the question."""
        return self.ask("/run", self._body())

    def output(self, run: str, name: str) -> bytes:
        return self.server.get(f"tabs/{self.name}/runs/{run}/{name}")

    def _body(self) -> str:
        return json.dumps({"file": self.file, "fields": self.fields})


class _Fields(HTMLParser):
    """The fields of a form, as a browser sends them."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}
        self._select = ""
        self.feed(form)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name, value = given.get("name") or "", given.get("value") or ""
        if tag == "select":
            self._select, self._is_first = name, True
        elif tag == "option" and (self._is_first or "selected" in given):
            self.found[self._select], self._is_first = [value], False
        elif tag == "input":
            can_be_off = given.get("type") in {"radio", "checkbox"}
            if "checked" in given or not can_be_off:
                self.found.setdefault(name, []).append(value)


def read_fields(form: str) -> dict[str, list[str]]:
    """Return what a browser would send of a form as it was drawn."""
    return _Fields(form).found
