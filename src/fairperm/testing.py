"""Assertions on audits, for pytest and CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from fairperm.auditing.audit import audit
from fairperm.auditing.gates import Gate
from fairperm.auditing.result import Audit
from fairperm.data.arguments import Column
from fairperm.errors import InputError, did_you_mean, listed, shown, warn_of

__all__ = ["assert_no_disparity"]

FailingVerdict: TypeAlias = Literal[
    "disparity", "inconclusive", "too small", "ratio", "ratio estimate"
]
_VERDICTS = get_args(FailingVerdict)
_RULE = f"one or several of {listed(_VERDICTS)}"
_NAMES = {"ratio": "ratio not met", "ratio estimate": "ratio not met by the estimate"}


def assert_no_disparity(
    audit_or_labels: Audit | Column | None = None,
    *arguments: Any,
    fail_on: FailingVerdict | Sequence[FailingVerdict] = "disparity",
    **options: Any,
) -> Audit:
    """Raise an AssertionError with the audit's table if it finds a disparity.

    Raises InputError if that cannot be evaluated.

    Parameters
    ----------
    audit_or_labels : Audit or array-like, optional
        An audit, or the first argument of one: the labels.
    *arguments, **options
        The other arguments of :func:`fairperm.audit`.
    fail_on : str or list of str
        The verdicts that fail: "disparity", "inconclusive", "too small"; or "ratio", a ratio that
        is shown to break the bound of ``ratio=``, and "ratio estimate", one that breaks it in the
        sample, whatever chance may do.

    Returns
    -------
    Audit

    Notes
    -----
    Finding no disparity does not prove that there is none. With ``margin=`` and
    ``fail_on=("disparity", "inconclusive", "too small")``, only comparisons with the verdict
    "equivalent" pass.

    Comparisons that are too small, or whose metric has no value in a group, do not fail on
    "disparity"; a warning counts them. It is an error if no comparison was judged, or if one
    cannot have the verdict whatever its gap: a margin of a joint metric, values without a ratio,
    too few permutations. In an audit of two models the gaps are those of the old model.

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
    __tracebackhide__ = True  # pytest shows the test, and the answer
    verdicts = [_find_verdict(one) for one in ([fail_on] if isinstance(fail_on, str) else fail_on)]
    if not verdicts:
        raise InputError("fail_on", _RULE, fail_on)
    if isinstance(audit_or_labels, Audit):
        if arguments or options:
            got = arguments[0] if arguments else next(iter(options))
            raise InputError(f"Pass an audit or its arguments, not both; got {shown(got)}.")
        result = audit_or_labels
    else:
        given = (audit_or_labels, *arguments)
        result = audit(*([] if given[0] is None and not arguments else given), **options)
    gate = Gate(tuple(verdicts))
    failed = gate.find_failed(result)
    if failed:
        names = (_NAMES.get(one, one) for one in verdicts)
        raise AssertionError(
            f"{result!r}\n{len(failed)} of {len(result.rows)} comparisons have the verdict "
            f"{' or '.join(names)}."
        )
    gate.check(result)
    warn_of(gate.note_not_judged(result))
    return result


def _find_verdict(given: object) -> str:
    word = given.replace("-", " ").replace("_", " ") if isinstance(given, str) else given
    if word in _VERDICTS:
        return str(word)
    raise InputError("fail_on", _RULE, given, did_you_mean(given, _VERDICTS))
