"""Logs of Inspect: the samples of a ``.eval`` archive, or of its JSON, as lines of JSON."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairperm.cli.files.sql import Memory, first_line
from fairperm.errors import FairpermError, InputError, shown, warn_of

if TYPE_CHECKING:
    from fairperm.cli.files.formats import InputFile

HEAD = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')  # of a log in JSON
_ZSTD = 93  # the method of compression that the standard library learnt in Python 3.14
_LOCAL_HEADER = 30  # bytes before a member's name
_BULKY = {"events", "messages", "store", "attachments", "timelines"}  # most of a log
_HINT = "Is it a log of Inspect?"


def read_samples(file: InputFile, memory: Memory) -> Iterator[bytes]:
    """Yield a line of JSON for each sample, with its task and model.

    Raises InputError for what is no log of Inspect, and for a log without samples.
    """
    try:
        if zipfile.is_zipfile(file.path):
            with zipfile.ZipFile(file.path) as archive:
                yield from _write_lines(file, *_open_archive(archive, file, memory))
        else:
            memory.add(file.path.stat().st_size, "Write the log in the format .eval.")
            log = _parse(file.path.read_bytes())
            yield from _write_lines(file, log, iter(log.get("samples") or ()))
    except FairpermError:
        raise
    except Exception as error:  # an archive of JSON, either of which may be damaged
        raise InputError(
            f"{shown(file.name)} cannot be read: {first_line(error)}. {_HINT}"
        ) from error


def _open_archive(
    archive: zipfile.ZipFile, file: InputFile, memory: Memory
) -> tuple[Mapping[str, Any], Iterator[Any]]:
    """Return what the log says of the run, and its samples, one after the other."""

    def read(name: str) -> Any:
        one = archive.getinfo(name)
        memory.add(one.file_size, "Write smaller samples to the log.")
        memory.size -= one.file_size
        return _parse(_decompress(archive, one, file))

    names = sorted({one.filename for one in archive.infolist()})
    head = "header.json" if "header.json" in names else "_journal/start.json"  # it has not ended
    return read(head), map(read, (one for one in names if re.fullmatch(r"samples/.*\.json", one)))


def _decompress(archive: zipfile.ZipFile, one: zipfile.ZipInfo, file: InputFile) -> bytes:
    if one.compress_type != _ZSTD:
        return archive.read(one)
    import pyarrow as pa

    with file.path.open("rb") as source:
        source.seek(one.header_offset)
        header = source.read(_LOCAL_HEADER)
        source.seek(sum(int.from_bytes(header[at : at + 2], "little") for at in (26, 28)), 1)
        packed = source.read(one.compress_size)
    found: bytes = pa.decompress(packed, one.file_size, codec="zstd", asbytes=True)
    if zlib.crc32(found) != one.CRC:
        raise zipfile.BadZipFile(f"{shown(one.filename)} has a wrong checksum")
    return found


def _parse(text: bytes) -> Mapping[str, Any]:
    return _check(json.loads(text, parse_constant=lambda _: None))  # NaN is a missing score


def _check(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"an object was expected, not {type(found).__name__}")
    return found


def _write_lines(
    file: InputFile, log: Mapping[str, Any], samples: Iterator[Any]
) -> Iterator[bytes]:
    about = log.get("eval") or {}
    status = log.get("status", "not ended")
    if status != "success":
        warn_of(
            [
                f"{shown(file.name)} is of a run that did not succeed (status: {status}): samples "
                "may be missing, and not at random."
            ]
        )
    has_none = True
    for sample in samples:
        has_none = False
        row = {"task": about.get("task"), "model": about.get("model"), **_strip(_check(sample))}
        yield json.dumps(row, allow_nan=False).encode() + b"\n"
    if has_none:
        raise InputError(f"{shown(file.name)} has no samples. {_HINT}")


def _strip(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample without what is bulky, and not a value for each sample."""
    kept = {name: one for name, one in sample.items() if name not in _BULKY}
    if isinstance(kept.get("input"), list):
        del kept["input"]
    if isinstance(output := kept.get("output"), dict):
        kept["output"] = {name: one for name, one in output.items() if name != "choices"}
    if isinstance(scores := kept.get("scores"), dict):
        kept["scores"] = {
            scorer: {name: one for name, one in _check(score).items() if name != "history"}
            for scorer, score in scores.items()
        }
    return kept
