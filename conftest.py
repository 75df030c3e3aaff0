"""What every test and every example shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairperm import metrics

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    """Forget the metrics that a test registers: others read the whole registry."""
    names, aliases = dict(metrics._BY_NAME), dict(metrics._BY_ALIAS)
    yield
    for registry, before in ((metrics._BY_NAME, names), (metrics._BY_ALIAS, aliases)):
        registry.clear()
        registry.update(before)
