"""Where original files are found: the user's folder, the cache, and else where they come from."""

from __future__ import annotations

import hashlib
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from fairperm._utils.files import write_whole
from fairperm.errors import FairpermError, FairpermWarning, InputError

__all__ = ["DataUnavailableError", "Original", "cache_folder", "contents"]

FOLDER_VARIABLE = "FAIRPERM_DATA"
SILENCE = 30.0  # seconds that a server may say nothing
PATIENCE = 300.0  # seconds that a download may take
_CHUNK = 1 << 16
_MOST_BYTES = 1 << 26  # ten times the largest of the files


class DataUnavailableError(FairpermError, OSError):
    """A data set is neither on this machine nor can it be downloaded."""


@dataclass(frozen=True, slots=True)
class Original:
    """A file as its source publishes it."""

    name: str
    url: str
    md5: str

    def is_sound(self, content: bytes) -> bool:
        """Tell whether this is what the source publishes."""
        return hashlib.md5(content, usedforsecurity=False).hexdigest() == self.md5


def contents(originals: tuple[Original, ...], table: str) -> dict[str, bytes]:
    """Return what is in the originals, or in one `table` made of them, by the files' names.

    The folder that FAIRPERM_DATA names comes first, and what is there is taken as it is. Then the
    cache, then the source: both are checked.
    """
    own = _in_folder(tuple(one.name for one in originals), table)
    if own is not None:
        return own
    found = {}
    for one in originals:
        found[one.name] = _cached(one) or _downloaded(one, originals, table)
    return found


def cache_folder() -> Path:
    """Return the folder in which downloads are kept, by the custom of the system."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():  # others are to be ignored, the specification says
        return Path(given) / "fairperm"
    home = Path("~").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "fairperm"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "fairperm"
    return home / ".cache" / "fairperm"


def _in_folder(names: tuple[str, ...], table: str) -> dict[str, bytes] | None:
    """Return the files that the user's folder has, originals before the table."""
    given = os.environ.get(FOLDER_VARIABLE)
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        hint = f"Unset {FOLDER_VARIABLE} to download the data."
        raise InputError(FOLDER_VARIABLE, "the path of a folder", given, hint)
    for layout in (names, (table,)):
        if all((folder / name).is_file() for name in layout):
            try:
                return {name: (folder / name).read_bytes() for name in layout}
            except OSError as error:
                reason = error.strerror or error
                raise DataUnavailableError(
                    f"{str(error.filename)!r} cannot be read: {reason}."
                ) from error
    return None


def _cached(original: Original) -> bytes | None:
    """Return a file out of the cache, unless it is damaged."""
    try:
        content = (cache_folder() / original.name).read_bytes()
    except OSError:
        return None
    return content if original.is_sound(content) else None


def _downloaded(original: Original, originals: tuple[Original, ...], table: str) -> bytes:
    """Return a file from its source, checked, and keep it in the cache."""
    try:
        content = _received(original.url)
        if not original.is_sound(content):
            raise OSError(f"what came ({len(content):,} bytes) has another md5 than {original.md5}")
    except OSError as error:
        wanted = " and ".join(one.name for one in originals)
        folder = os.environ.get(FOLDER_VARIABLE)
        looked = f"the folder of {FOLDER_VARIABLE} ({repr(str(folder)) if folder else 'not set'})"
        raise DataUnavailableError(
            f"{original.name} is neither in {looked} nor in the cache "
            f"({str(cache_folder())!r}), and could not be downloaded from {original.url}: "
            f"{_reason(error)}. Download it where there is a network, and set {FOLDER_VARIABLE} to "
            f"the folder that has {wanted} (or {table})."
        ) from error
    _keep(original.name, content)
    return content


def _received(url: str) -> bytes:
    """Return what a server sends; OSError for all that can go wrong on the way."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    end = time.monotonic() + PATIENCE
    content = bytearray()
    try:
        with urlopen(url, timeout=SILENCE) as response:  # noqa: S310 - our own addresses, https
            announced = response.headers.get("Content-Length")
            while chunk := response.read1(_CHUNK):
                content += chunk
                if len(content) > _MOST_BYTES:
                    raise OSError(f"the server sends more than {_MOST_BYTES:,} bytes")
                if time.monotonic() > end:
                    raise TimeoutError(f"no end after {PATIENCE:g} seconds")
    except HTTPError as error:
        error.close()
        raise OSError(f"the server says {error.code} {error.reason}") from error
    except HTTPException as error:
        raise OSError(f"the server broke off ({error!r})") from error
    if announced and announced.isdecimal() and len(content) < int(announced):
        raise OSError(f"the server broke off after {len(content):,} of {int(announced):,} bytes")
    return bytes(content)


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", None)  # URLError wraps the one that says it
    return str(reason or error).strip(" .") or type(error).__name__


def _keep(name: str, content: bytes) -> None:
    """Put a file into the cache; what cannot be kept is used all the same."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, content)
    except (OSError, FairpermError) as error:
        note = f"{name} was downloaded, but cannot be kept for the next time: {error}"
        warnings.warn(note, FairpermWarning, stacklevel=5)
