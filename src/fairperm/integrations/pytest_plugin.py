"""The plugin of pytest: audits and assertions as ``[tool.fairperm]`` asks for them.

pytest imports this module at every start: fairperm is imported by the tests that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import chdir, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    import fairperm

_OF_DATA = ("pos_label", "reference", "stratum_weights")  # values in columns


@pytest.fixture(scope="session")
def fairperm_audit(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> fairperm.Audit:
    """Return what ``fairperm audit`` finds in the root folder of pytest, with its options."""
    import json
    import subprocess
    import sys

    from fairperm import Audit, InputError

    path = tmp_path_factory.mktemp("fairperm") / "audit.json"
    command = (sys.executable, "-P", "-m", "fairperm", "audit", "--quiet", "--json", str(path))
    done = subprocess.run(  # noqa: S603
        command, cwd=pytestconfig.rootpath, capture_output=True, encoding="utf-8", check=False
    )
    if not path.exists():
        raise InputError(done.stderr.rpartition("fairperm: error: ")[2].strip())
    return Audit.from_dict(json.loads(path.read_text(encoding="utf-8"))["result"])


@pytest.fixture
def assert_no_disparity(
    pytestconfig: pytest.Config, request: pytest.FixtureRequest
) -> Callable[..., fairperm.Audit]:
    """Return ``fairperm.testing.assert_no_disparity`` with the options of ``[tool.fairperm]``.

    Its arguments come first. Without any it asks about the files of the table. Options that name
    columns hold for ``data=``.
    """
    from fairperm import Audit, testing

    def check(*arguments: Any, **options: Any) -> fairperm.Audit:
        __tracebackhide__ = True
        known = _read_options(pytestconfig.rootpath, options.get("data"))
        words = known.pop("fail_on", "disparity")
        words = options.pop("fail_on", words)
        if not arguments and not options:
            arguments = (request.getfixturevalue("fairperm_audit"),)
        elif not (arguments and isinstance(arguments[0], Audit)):
            positional = ("y_true", "y_pred")[: len(arguments)]
            options = {name: one for name, one in known.items() if name not in positional} | options
        return testing.assert_no_disparity(*arguments, fail_on=words, **options)

    return check


def _read_options(folder: Path, data: Any) -> dict[str, Any]:
    """Return the arguments that the options of a folder set, of columns only if there are data."""
    import click
    from click.core import ParameterSource

    from fairperm import InputError
    from fairperm.cli.files.loading import COLUMNS, LoadedData
    from fairperm.cli.main import app
    from fairperm.cli.options import convert_values

    command = app.commands["audit"]
    try:
        with (
            chdir(folder),
            app.make_context("fairperm", ["audit"]) as root,
            command.make_context("audit", [], parent=root) as ctx,
        ):
            source, given = ctx.get_parameter_source, ctx.params
    except click.ClickException as error:
        raise InputError(f"{error.format_message()} (in [tool.fairperm])") from error
    asked = [one for one in command.options if source(one.name) == ParameterSource.DEFAULT_MAP]
    if data is None:
        asked = [one for one in asked if one.name not in {*COLUMNS, *_OF_DATA}]
    names = tuple(data if isinstance(data, dict) else getattr(data, "columns", ()))
    found = convert_values(asked, given, LoadedData(data, names, [], nullcontext))
    return found | ({"fail_on": given["fail_on"]} if given["fail_on"] else {})
