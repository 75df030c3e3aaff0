"""A gate as JUnit's XML, which CI systems show test by test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple
from xml.etree import ElementTree as ET

from fairperm._utils.formatting import format_name
from fairperm.cli.terminal import write_message
from fairperm.errors import InputError

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(NamedTuple):
    """One comparison as a test: its verdict, why, and whether that makes the command fail."""

    attribute: object
    name: str
    verdict: str
    reason: str
    has_failed: bool


def as_junit(command: str, cases: Iterable[Case], check: Callable[[], object]) -> str:
    """Return the cases as XML.

    Comparisons that are too small for a verdict, and do not fail, are skipped tests. ``check``
    raises InputError if nothing failed and the gate cannot be evaluated: one more test, in error.
    """
    suite = ET.Element("testsuite", name=f"fairperm {command}")
    outcomes = []
    for one in cases:
        place = f"fairperm.{format_name(one.attribute).replace('.', '_')}"
        case = ET.SubElement(suite, "testcase", classname=place, name=one.name)
        outcome = "passed"
        if one.has_failed:
            outcome = "failure"
        elif one.verdict == "too small":
            outcome = "skipped"
        outcomes.append(outcome)
        if outcome != "passed":
            told = ET.SubElement(case, outcome, message=one.verdict)
            told.text = one.reason
    try:
        if "failure" not in outcomes:
            check()
    except InputError as error:
        case = ET.SubElement(suite, "testcase", classname="fairperm", name="the gate")
        ET.SubElement(case, "error", message=write_message(error))
        outcomes.append("error")
    counts = {"failures": "failure", "skipped": "skipped", "errors": "error"}
    suite.attrib |= {name: str(outcomes.count(one)) for name, one in counts.items()}
    suite.set("tests", str(len(outcomes)))
    for element in suite.iter():
        element.attrib |= {name: _escape(text) for name, text in element.attrib.items()}
        element.text = _escape(element.text or "")
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def _escape(text: str) -> str:
    return _NOT_IN_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
