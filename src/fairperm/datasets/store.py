"""The files of the data sets: in the user's folder, in the cache, or at their source."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from fairperm._utils.files import write_whole
from fairperm.errors import FairpermError, FairpermWarning, InputError

FOLDER_VARIABLE = "FAIRPERM_DATA"
TIMEOUT = 30.0  # seconds without an answer from the server


class DataUnavailableError(FairpermError, OSError):
    """A data set is not on this machine and cannot be downloaded.

    Its files, under their owners' names, are read from the folder that the environment variable
    FAIRPERM_DATA names; else from the cache; else they are downloaded, checked (md5) and cached.
    """


@dataclass(frozen=True, slots=True)
class Original:
    """A file as its source publishes it."""

    name: str
    url: str
    md5: str

    def matches(self, content: bytes) -> bool:
        """Whether the content has the checksum of the published file."""
        return hashlib.md5(content, usedforsecurity=False).hexdigest() == self.md5


def read_files(*originals: Original) -> dict[str, bytes]:
    """Return the contents of the originals by file name."""
    # The folder that FAIRPERM_DATA names comes first; its files are not checked. Then the cache,
    # then the source: both are checked.
    found = _read_folder([one.name for one in originals])
    return found or {one.name: _read_cache(one) or _download(one, originals) for one in originals}


def cache_folder() -> Path:
    """Return the folder for downloads, by the convention of the operating system."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():  # the specification says to ignore relative paths
        return Path(given) / "fairperm"
    home = Path("~").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "fairperm"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "fairperm"
    return home / ".cache" / "fairperm"


def _read_folder(names: list[str]) -> dict[str, bytes]:
    """Return the files in the user's folder, or nothing if it lacks one."""
    given = os.environ.get(FOLDER_VARIABLE)
    if not given:
        return {}
    folder = Path(given).expanduser()
    if not folder.is_dir():
        hint = f"Unset {FOLDER_VARIABLE} to download the data."
        raise InputError(FOLDER_VARIABLE, "the path of a folder", given, hint)
    if not all((folder / name).is_file() for name in names):
        return {}
    try:
        return {name: (folder / name).read_bytes() for name in names}
    except OSError as error:
        raise DataUnavailableError(f"Cannot read a file: {error}.") from error


def _read_cache(original: Original) -> bytes | None:
    """Return a file from the cache, or None if it is absent or damaged."""
    try:
        content = (cache_folder() / original.name).read_bytes()
    except OSError:
        return None
    return content if original.matches(content) else None


def _download(original: Original, originals: tuple[Original, ...]) -> bytes:
    """Return a file from its source, checked, and put it into the cache."""
    from http.client import HTTPException

    folder = os.environ.get(FOLDER_VARIABLE)
    try:
        content = _receive(original.url)
        if not original.matches(content):
            raise OSError(f"the {len(content):,} bytes received do not have md5 {original.md5}")
    except (OSError, HTTPException) as error:
        wanted = " and ".join(one.name for one in originals)
        raise DataUnavailableError(
            f"{original.name} is not in the folder of {FOLDER_VARIABLE} "
            f"({repr(folder) if folder else 'not set'}), not in the cache "
            f"({str(cache_folder())!r}), and could not be downloaded from {original.url}: "
            f"{error}. Download it on a machine with a network, and set {FOLDER_VARIABLE} to the "
            f"folder that has {wanted}."
        ) from error
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        write_whole(cache_folder() / original.name, content)
    except (OSError, FairpermError) as error:
        note = f"{original.name} was downloaded but could not be put into the cache: {error}"
        warnings.warn(note, FairpermWarning, stacklevel=5)
    return content


def _receive(url: str) -> bytes:
    from urllib.request import urlopen

    with urlopen(url, timeout=TIMEOUT) as response:  # noqa: S310 - our own addresses, https
        return response.read()  # type: ignore[no-any-return]
