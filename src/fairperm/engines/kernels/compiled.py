"""Kernels compiled by Numba, and where their code is kept."""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from fairperm._utils.files import write_whole
from fairperm._utils.progress import say_compiling
from fairperm.errors import FairpermWarning, InputError, shown

Function = TypeVar("Function", bound="Callable[..., Any]")

_DIGEST = 32  # bytes of a SHA-256
_NO_CACHE = (
    "No folder for compiled code can be written to, neither that of fairperm nor one in the home "
    "folder: it is compiled anew in every process, which takes 5 to 30 seconds. Set "
    "NUMBA_CACHE_DIR to a folder that you, and nobody else, can write to."
)
_OPEN_CACHE = (
    "The folder for compiled code, {}, belongs to another user or others can write to it: what "
    "they put there would run here, so it is not used, and code is compiled anew in every process, "
    "which takes 5 to 30 seconds. Remove it, or set NUMBA_CACHE_DIR to a folder that you, and "
    "nobody else, can write to."
)
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def kernel(function: Function) -> Function:
    """Compile a function once per machine, to run without Python's global lock.

    Kernels use one thread: callers run blocks of permutations on a pool of threads. No fast-math:
    sums keep their order, so a result does not depend on the machine's vector width. Division by
    zero gives NaN or infinity, as in NumPy. Without a folder to keep the compiled code in, it is
    compiled once per process.
    """
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    if hasattr(compiled, "_cache"):  # not if Numba is told to interpret
        try:
            compiled._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
        except RuntimeError:  # Numba finds no folder
            _warn_of_no_cache()
    return cast("Function", compiled)


@cache
def _warn_of_no_cache() -> None:
    warnings.warn(_NO_CACHE, FairpermWarning, stacklevel=3)


@cache
def _warn_of_open_cache(folder: Path) -> None:
    warnings.warn(_OPEN_CACHE.format(shown(str(folder))), FairpermWarning, stacklevel=3)


def _is_private(found: os.stat_result) -> bool:
    """Return whether a file or folder is this user's and nobody else can write to it."""
    if not hasattr(os, "geteuid"):  # Windows, which has other rights
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS


class _KernelCache(FunctionCache):
    """The compiled code of a function: one file per signature, with a digest of its content.

    Numba's own cache has an index of files, which two first runs at the same time can make point to
    the code of another signature, and fails if a file is damaged. Files of either run as code: ours
    are in a private folder, and what other users could have written is not read.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature; None, and it is compiled, if there is none intact."""
        target_context.refresh()
        path = self._find_path(sig, target_context.codegen())
        content = self._read(path)
        digest, code = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(code).digest() != digest:
            if not any(path.parent.glob("*.nbc")):  # the first on this machine
                say_compiling()
            return None
        found = pickle.loads(code)  # noqa: S301 (code that this user wrote)
        return self._impl.rebuild(target_context, found)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature, if there is room for it."""
        if not self._impl.check_cachable(data):
            return
        code = dumps(self._impl.reduce(data))
        try:
            self._impl.locator.ensure_cache_path()
            path = self._find_path(sig, data.codegen)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if _is_private(path.parent.lstat()):
                write_whole(path, hashlib.sha256(code).digest() + code)
                path.chmod(0o600)
        except (OSError, InputError):  # the next process compiles it again
            return

    def _find_path(self, sig: Any, codegen: Any) -> Path:
        parts = numba.__version__, self._impl.locator.get_source_stamp()
        index: Any = self._index_key(sig, codegen)  # type: ignore[no-untyped-call]
        key = repr((*parts, index)).encode()
        name = f"{self._impl.filename_base}.{hashlib.sha256(key).hexdigest()[:20]}.nbc"
        user = os.geteuid() if hasattr(os, "geteuid") else "all"
        return Path(self.cache_path) / f"fairperm-{user}" / name

    def _read(self, path: Path) -> bytes:
        """Return the content of a file that only this user can have written, else nothing."""
        try:
            if not _is_private(path.parent.lstat()):
                _warn_of_open_cache(path.parent)
                return b""
            with path.open("rb") as file:
                return file.read() if _is_private(os.fstat(file.fileno())) else b""
        except OSError:
            return b""


def inlined(function: Function) -> Function:
    """Compile a part of kernels anew wherever it is called, for the constants passed to it."""
    return cast("Function", numba.njit(inline="always", error_model="numpy")(function))
