"""Fairness as a test of your own: what pytest and CI can fail on."""

from __future__ import annotations

from typing import Any

from fairperm.auditing.audit import audit
from fairperm.auditing.result import Audit
from fairperm.errors import InputError, did_you_mean, listed

__all__ = ["assert_no_disparity"]

_VERDICTS = ("disparity", "inconclusive", "too small")


def assert_no_disparity(
    audit_or_labels: object,
    *arguments: object,
    fail_on: str | tuple[str, ...] | list[str] = "disparity",
    **options: Any,
) -> Audit:
    """Raise an AssertionError, with the table in its message, if an audit finds a disparity.

    Parameters
    ----------
    audit_or_labels : Audit or array-like
        An audit, or the labels that begin the arguments of one.
    *arguments, **options
        The other arguments of :func:`fairperm.audit`.
    fail_on : str or list of str
        The verdicts that fail: "disparity", "inconclusive", "too small".

    Returns
    -------
    Audit

    Notes
    -----
    That no disparity is found does not show that there is none: with ``margin=`` and
    ``fail_on=("disparity", "inconclusive", "too small")`` only positive evidence passes.

    Examples
    --------
    >>> from fairperm.testing import assert_no_disparity
    >>> audit = assert_no_disparity(
    ...     [1] * 160 + [0] * 40 + [1] * 40 + [0] * 160,
    ...     [0] * 16 + [1] * 184 + [0] * 8 + [1] * 192,
    ...     sensitive_features=["a"] * 200 + ["b"] * 200,
    ...     metrics="false_negative_rate",
    ... )
    >>> [row.verdict for row in audit]
    ['inconclusive']
    """
    wanted = [_verdict(one) for one in ([fail_on] if isinstance(fail_on, str) else fail_on)]
    if isinstance(audit_or_labels, Audit):
        if arguments or options:
            got = arguments[0] if arguments else next(iter(options))
            raise InputError("arguments", "left out with an audit", got)
        found = audit_or_labels
    else:
        found = audit(audit_or_labels, *arguments, **options)
    failed = [row for row in found.rows if row.verdict in wanted]
    if failed:
        told = " or ".join(wanted)
        raise AssertionError(
            f"{len(failed)} of {len(found.rows)} comparisons have the verdict {told}.\n{found!r}"
        )
    return found


def _verdict(given: object) -> str:
    word = given.replace("-", " ").replace("_", " ") if isinstance(given, str) else given
    if word in _VERDICTS:
        return str(word)
    rule = f"made of {listed(_VERDICTS)}"
    raise InputError("fail_on", rule, given, did_you_mean(given, _VERDICTS))
