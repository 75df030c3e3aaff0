"""Damage files at random and run the command on each: ``python -m tests.support.damaged_files``.

A crash ends this process, whose parent counts it: see tests/cli/test_damaged_files.py. Each line
that is printed has the number of a mutation, and how the command ended.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from fairperm.cli import main
from tests.support.commands import sample

MAX_MEMORY = 8 << 30  # of addresses
MAX_KILOBYTES, MAX_SECONDS = 4 << 20, 30
EXTREMES = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
FORMATS = {"x": "snappy", "plain": "none", "dictionary": "none", "zstd": "zstd"}  # compression
COLUMNS = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "selection_rate")


def write_files() -> dict[str, bytes]:
    """Return the undamaged files by their names."""
    y, p, g = (list(column) for column in zip(*sample(120), strict=True))
    names = ["ä first group" if one == "a" else "b" for one in g]
    plain = pa.table({"y": y, "p": p, "g": names, "z": [None, *range(119)]})
    coded = plain.set_column(2, "g", plain["g"].dictionary_encode())
    found = {}
    for name, compression in FORMATS.items():
        out = io.BytesIO()
        table = coded if name == "dictionary" else plain
        pyarrow.parquet.write_table(table, out, compression=compression)
        found[f"{name}.parquet"] = out.getvalue()
    return found


def damage(content: bytes, chance: random.Random) -> bytes:
    """Return the content with flipped bits, a cut, extreme numbers, no UTF-8 or moved bytes."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(data))
        how = chance.randrange(7)
        if how == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif how == 1 and len(data) > 1:
            del data[at:]
            data = data or bytearray(b"\0")
        elif how in (2, 3):  # offsets, lengths and codes are aligned
            size = chance.choice((4, 8))
            at -= at % size
            number = chance.choice(EXTREMES).to_bytes(4, "little")
            data[at : at + size] = (
                number if size == 4 else number + chance.choice((bytes(4), b"\xff" * 4))
            )
        elif how == 4:
            data[at : at + 3] = b"\xff\xfe\x80"
        elif how == 5:
            end = at + chance.randrange(1, 64)
            data[at:end] = bytes(len(data[at:end]))
        else:
            to = chance.randrange(len(data))
            data[to : to + 16] = data[at : at + 16]
    return bytes(data)


def read_groups(path: Path) -> Counter[str]:
    """Return the rows of each group by plain pandas, from the columns that the command read."""
    frame = pd.read_parquet(path, columns=["y", "p", "g"])
    return Counter(map(str, frame["g"]))


def run(first: int, end: int, folder: Path) -> None:
    """Run the command on these mutations."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    os.chdir(folder)  # no file of options is there
    files = write_files()
    told = sys.stdout
    for number in range(first, end):
        chance = random.Random(number)
        name = [*files][number % len(files)]
        path = folder / f"damaged-{name}"
        path.write_bytes(damage(files[name], chance))
        print(number, name, end=" ", file=told, flush=True)
        sys.argv = ["fairperm", "audit", str(path), *COLUMNS, "--resamples", "9", "-q"]
        sys.argv += ["--json", "-"]
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        started = time.monotonic()
        code = main._run()
        said = repr(sys.stderr.getvalue())
        if time.monotonic() - started > MAX_SECONDS:
            said += " too slow"
        if code == 0:
            groups = json.loads(sys.stdout.getvalue())["result"]["groups"]
            found = {str(one["group"]): one["rows"] for one in groups}
            try:
                right = read_groups(path)
            except Exception:  # it refuses what is damaged elsewhere: the rows must be as before
                path.write_bytes(files[name])
                right = read_groups(path)
            said += "" if found == right else f" wrong: {found}, not {dict(right)}"
        print(code, said, file=told, flush=True)
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MAX_KILOBYTES:
        sys.exit("too much memory")


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
