"""Who may talk to the page: only itself, under its own name, with the token of its address."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_CLOSED = "This page is closed. Open the address that fairperm printed when it started."
_FOREIGN = "This request comes from another page, and was not answered."


class Guard:
    """Answers only requests that the page itself makes; everything else gets one sentence.

    A request must name one of ``hosts``, so that no other name can be pointed at this machine; its
    path must begin with one of ``tokens``; and if it changes something, or comes from a page, that
    page must be ours.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], token: str) -> None:
        self.app, self.hosts, self.token = app, hosts, token
        self.once: set[str] = set()  # tokens that open the page a single time

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        token, _, rest = scope["path"].removeprefix("/").partition("/")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    found.setdefault(name, value)
            await send(message)

        if headers.get("host") not in self.hosts or self._is_foreign(scope["method"], headers):
            answer: ASGIApp = PlainTextResponse(_FOREIGN, 403)
        elif token in self.once and not rest:
            self.once.discard(token)
            answer = PlainTextResponse("", 303, {"Location": f"/{self.token}/"})
        elif not hmac.compare_digest(token.encode(), self.token.encode()):
            answer = PlainTextResponse(_CLOSED, 404)
        else:
            scope = {**scope, "path": f"/{rest}"}
            answer = self.app
        await answer(scope, receive, send_guarded)

    def _is_foreign(self, method: str, headers: Headers) -> bool:
        """Whether another page makes the request, or may: browsers say which one does."""
        origin, ours = headers.get("origin"), f"http://{headers['host']}"
        is_safe = method in {"GET", "HEAD"}
        if origin != ours and not (is_safe and origin is None):
            return True
        return headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}
