"""Assertions on audits, for pytest and CI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from fairperm.auditing.audit import audit
from fairperm.auditing.result import Audit
from fairperm.errors import InputError, did_you_mean, listed, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairperm.data.arguments import Column

__all__ = ["assert_no_disparity"]

FailingVerdict: TypeAlias = Literal["disparity", "inconclusive", "too small"]
_VERDICTS = get_args(FailingVerdict)


def assert_no_disparity(
    audit_or_labels: Audit | Column,
    *arguments: Any,
    fail_on: FailingVerdict | Sequence[FailingVerdict] = "disparity",
    **options: Any,
) -> Audit:
    """Raise an AssertionError with the audit's table if it finds a disparity.

    Parameters
    ----------
    audit_or_labels : Audit or array-like
        An audit, or the first argument of one: the labels.
    *arguments, **options
        The other arguments of :func:`fairperm.audit`.
    fail_on : str or list of str
        The verdicts that fail: "disparity", "inconclusive", "too small".

    Returns
    -------
    Audit

    Notes
    -----
    Finding no disparity does not prove that there is none. With ``margin=`` and
    ``fail_on=("disparity", "inconclusive", "too small")``, only comparisons with the verdict
    "equivalent" pass.

    Examples
    --------
    >>> from fairperm.testing import assert_no_disparity
    >>> audit = assert_no_disparity(
    ...     [1] * 160 + [0] * 40 + [1] * 60 + [0] * 140,
    ...     [0] * 16 + [1] * 184 + [0] * 10 + [1] * 190,
    ...     sensitive_features=["a"] * 200 + ["b"] * 200,
    ...     metrics="false_negative_rate",
    ... )
    >>> [row.verdict for row in audit]
    ['inconclusive']
    """
    verdicts = [_find_verdict(one) for one in ([fail_on] if isinstance(fail_on, str) else fail_on)]
    if isinstance(audit_or_labels, Audit):
        if arguments or options:
            got = arguments[0] if arguments else next(iter(options))
            raise InputError(f"Pass an audit or its arguments, not both; got {shown(got)}.")
        result = audit_or_labels
    else:
        result = audit(audit_or_labels, *arguments, **options)
    failed = [row for row in result.rows if row.verdict in verdicts]
    if failed:
        raise AssertionError(
            f"{len(failed)} of {len(result.rows)} comparisons have the verdict "
            f"{' or '.join(verdicts)}.\n{result!r}"
        )
    return result


def _find_verdict(given: object) -> str:
    word = given.replace("-", " ").replace("_", " ") if isinstance(given, str) else given
    if word in _VERDICTS:
        return str(word)
    rule = f"one or several of {listed(_VERDICTS)}"
    raise InputError("fail_on", rule, given, did_you_mean(given, _VERDICTS))
