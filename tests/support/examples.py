"""How many examples Hypothesis tries."""

from __future__ import annotations

from hypothesis import settings


def examples(most: int) -> settings:
    """Return the settings for this many examples in ``make validate``, a quarter in ``make test``.

    Without them there are as many as the profiles in ``conftest.py`` say.
    """
    profile = settings.default
    assert profile is not None
    return settings(max_examples=most * profile.max_examples // 100)
