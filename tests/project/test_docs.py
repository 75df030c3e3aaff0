"""Every block of code on every page runs, from top to bottom, as a reader would run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.support.doc_blocks import Block, blocks

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src").rglob("*.md")),
]
WITH_CODE = {str(page.relative_to(ROOT)): found for page in PAGES if (found := blocks(page))}
IN_ITS_OWN_ENVIRONMENT = "docs/how-to/mlflow.md"  # tests/integrations/test_mlflow.py
NEEDS_SPARK = re.compile(r"pyspark|joblibspark|\bspark\.")
ON_SPARK = sorted(
    name
    for name, found in WITH_CODE.items()
    if any(one.language == "python" and NEEDS_SPARK.search(one.text) for one in found)
)


def write_readers_file() -> None:
    """Write the one file that pages take for granted: predictions of the reader's own."""
    rng = np.random.default_rng(1)
    columns = {
        "y": rng.integers(2, size=600),
        "s": rng.random(600).round(3),
        "race": np.array(["black", "white"])[rng.integers(2, size=600)],
        "sex": np.array(["female", "male"])[rng.integers(2, size=600)],
    }
    pd.DataFrame(columns).to_csv("predictions.csv", index=False)


def read(name: str) -> None:
    """Run a page's blocks one after the other, in one namespace and one folder."""
    write_readers_file()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in WITH_CODE[name]:
        block.run(namespace, name)


FIRST = {"README.md", "CONTRIBUTING.md", "docs/index.md"}  # the pages that everybody reads
CASES = [
    pytest.param(name, marks=[] if name in FIRST else [pytest.mark.validate])
    for name in sorted({*WITH_CODE} - {*ON_SPARK, IN_ITS_OWN_ENVIRONMENT})
]


@pytest.mark.parametrize("name", CASES)
def test_every_block_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    read(name)


@pytest.mark.xdist_group("spark")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets to the Java process
@pytest.mark.filterwarnings("ignore:Spark version does not support stage-level")  # joblibspark
@pytest.mark.filterwarnings("ignore:Spark session is not provided")  # and this, too
@pytest.mark.filterwarnings("ignore:`apply_async` is deprecated")
@pytest.mark.parametrize("name", ON_SPARK)
def test_every_block_runs_on_spark(
    name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    read(name)  # SparkSession.builder.getOrCreate() finds the session of the tests


class TestTheReader:
    """That a block which is wrong is found to be wrong."""

    @staticmethod
    def block(tmp_path: Path, text: str) -> Block:
        page = tmp_path / "page.md"
        page.write_text(text)
        (one,) = blocks(page)
        return one

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("```python\n>>> 1 + 1\n3\n```\n", "Failed example"),
            ("```python\nassert 1 == 2\n```\n", "^$"),
            ("- in a list:\n\n    ```python\n    >>> 1 + 1\n    3\n    ```\n", "Failed example"),
            ("```console\n$ fairperm nothing\n```\n", "No such command"),
            ("```console\n$ fairperm metrics fnr\nsomething else\n```\n", "fairperm metrics fnr"),
            ("```\nno language\n```\n", "no way to run"),
            ("```text\n$ fairperm demo\n```\n", "code in a block of text"),
        ],
    )
    def test_what_is_wrong_is_found(self, text: str, said: str, tmp_path: Path) -> None:
        with pytest.raises(AssertionError, match=said):
            self.block(tmp_path, text).run({}, "page.md")

    def test_names_are_kept_from_block_to_block(self, tmp_path: Path) -> None:
        namespace: dict[str, Any] = {}
        self.block(tmp_path, "```python\n>>> a = 1\n```\n").run(namespace, "page.md")
        self.block(tmp_path, "```python\n>>> a\n1\n```\n").run(namespace, "page.md")
        assert namespace["a"] == 1
