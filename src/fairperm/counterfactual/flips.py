"""Does a decision change with an attribute? ``flip_test`` asks the model about copies of rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np

from fairperm._utils import checks
from fairperm._utils.arrays import Places
from fairperm._utils.progress import show_progress
from fairperm._utils.signatures import complete, shares
from fairperm.counterfactual.copies import Copies, generate, read_copies
from fairperm.counterfactual.decisions import Question, check_pos_label, judge, read_decisions
from fairperm.counterfactual.result import FlipTestResult
from fairperm.data.arguments import Frame, Label, Resamples, Seed
from fairperm.data.columns import frame_of, library_of
from fairperm.errors import (
    FairpermError,
    InputError,
    InputTypeError,
    PredictError,
    Shown,
    argument,
    warn_of,
)
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.inference.null import anytime_interval
from fairperm.planning.searches import smallest_n

_MAX_ROWS = 10**9
_DRAWN = "drawn from the schema, each column by itself: they are not people"


class FlipArguments(TypedDict, total=False):
    """Arguments of :func:`fairperm.permutation_test` that a flip test has, too."""

    n_resamples: Resamples
    confidence_level: float
    rng: Seed
    progress: bool | None


@shares(permutation_test, FlipArguments)
def flip_test(
    predict: Callable[[Any], Any] | Any,
    data: Frame | None = None,
    *,
    feature: str,
    values: Sequence[Hashable] | None = None,
    proxies: Mapping[str, Mapping[Hashable, object]] | None = None,
    schema: Mapping[str, Sequence[Any]] | None = None,
    n: int | None = None,
    half_width: float | None = None,
    batch_size: int = 1000,
    threshold: float | None = None,
    pos_label: Label = None,
    **given: Unpack[FlipArguments],
) -> FlipTestResult:
    """Count how often a model's decision changes with an attribute of its input.

    Parameters
    ----------
    predict : callable or fitted estimator
        The model: a function that takes a frame like `data` and returns a decision for each of its
        rows, or an estimator with a method ``predict``. A decision is 0 or 1, a number such as a
        rating, or a text.
    data : frame or mapping
        Rows to copy, with the columns that the model needs.
    feature : str
        The attribute: a column of `data`.
    values : list, optional
        Its values to copy rows with, at least two; by default all that occur. Every row is copied
        with each of them, its own included.
    proxies : mapping, optional
        Other columns that change with it, such as titles or names: a mapping of columns to a
        mapping of each value to the column's value.
    schema : mapping, optional
        Instead of `data`, what to draw rows from at random: by column a list of categories, a
        ``range`` of whole numbers, or a pair (low, high) of the ends of numbers.
    n : int, optional
        Rows, drawn at random from `data` or from the schema; by default all.
    half_width : float, optional
        Rows are used batch by batch, in random order, until the interval of the share is at most
        twice as wide. It is then one that may be looked at after every batch, a confidence
        sequence, and `n` only a limit.
    batch_size : int
        Rows that the model gets at a time.
    threshold : float, optional
        If the model returns scores: decisions are whether a score is at least this.
    pos_label : optional
        The decision whose share is compared between values; all others are negative. Not needed
        for 0 and 1, booleans, and numbers, whose means are compared.
    **given
        All others are those of :func:`fairperm.permutation_test`.

    Returns
    -------
    FlipTestResult

    Raises
    ------
    PredictError
        If the model fails, or returns what is no decision for each row: what it decided before is
        in the error's ``outcomes``.

    Notes
    -----
    The share of rows whose decision is not the same with all values is a model's causal
    discrimination (Galhotra, Brun and Meliou, Fairness testing, 2017). Whether decisions change
    in one direction is tested inside the copies of each row: of 0 and 1 and two values by
    McNemar's test.

    A model may use what stands for the attribute: copies with unlikely combinations of columns, and
    proxies that stay as they are, hide or exaggerate this.

    Examples
    --------
    >>> import fairperm
    >>> def predict(rows):  # women need a higher income
    ...     return rows["income"] >= 40 + 5 * (rows["sex"] == "female")
    >>> schema = {"sex": ["female", "male"], "income": (20, 80)}
    >>> result = fairperm.flip_test(predict, schema=schema, feature="sex", n=1000, rng=1)
    >>> result.n_changed, [round(end, 3) for end in result.interval]
    (80, [0.064, 0.099])
    >>> result.pairs[0].n_higher, result.pairs[0].n_lower
    (0, 80)
    """
    given = complete(flip_test, given)
    checks.switch("progress", given["progress"])
    question = Question.of(
        threshold, pos_label, given["confidence_level"], given["n_resamples"], given["rng"]
    )
    size = checks.integer("batch_size", batch_size, 1, _MAX_ROWS)
    stop = _Stop(half_width, question.confidence_level)
    most = None if n is None else checks.integer("n", n, 2, _MAX_ROWS)
    model = _find_model(predict)
    if (data is None) == (schema is None):
        both = "" if data is None else ", not both"
        raise InputTypeError(f"Pass {argument('data')} or {argument('schema')}{both}.")
    if data is None:
        rows = generate(schema, stop.most_rows if most is None else most, question.seed)
        listed = schema.get(feature) if schema is not None else None
        known = listed if values is None and isinstance(listed, list) else values
        copies = read_copies(rows, feature, known, proxies)
    else:
        copies = read_copies(data, feature, values, proxies)
    order = _choose_rows(len(copies.frame), most, question.seed, all_rows=stop.half_width is None)
    answers = _Answers(copies, model, question, order)
    for n_changed, used in show_progress(
        answers.ask(size), -(-len(order) // size), given["progress"]
    ):
        if stop.is_narrow(n_changed, used):
            break
    result = answers.judge(
        stop, "sampled at random" if schema is None else _DRAWN, library_of(data)
    )
    warn_of(result.notes)
    return result


@dataclass(frozen=True, slots=True)
class _Stop:
    """When to stop: as soon as the interval is narrow, or never."""

    half_width: float | None
    level: float

    def __post_init__(self) -> None:
        rule = "above 0 and below 0.5"
        if (
            self.half_width is not None
            and not 0 < checks.number("half_width", self.half_width, rule) < 0.5
        ):
            raise InputError("half_width", rule, self.half_width)

    def is_narrow(self, n_changed: int, n: int) -> bool:
        """Whether the interval is as narrow as asked."""
        if self.half_width is None:
            return False
        low, high = anytime_interval(n_changed, n, self.level)
        return high - low <= 2 * self.half_width

    @property
    def most_rows(self) -> int:
        """The number of rows that are enough whatever they say: half of them change."""
        if self.half_width is None:
            raise InputTypeError(
                "n", f"given with {argument('schema')}, or {argument('half_width')}", None
            )
        enough = smallest_n(lambda n: self.is_narrow(n // 2, n), 2, _MAX_ROWS)
        return _MAX_ROWS if enough is None else enough


class _Answers:
    """What the model said so far: ``decisions`` has those of every value, row by row."""

    def __init__(
        self,
        copies: Copies,
        model: Callable[[Any], Any],
        question: Question,
        order: Places,
    ) -> None:
        self.copies, self.model, self.question, self.order = copies, model, question, order
        self.decisions: list[list[Hashable]] = [[] for _ in copies.values]

    def ask(self, size: int) -> Iterator[tuple[int, int]]:
        """Ask about the rows, batch by batch; yield how many changed, and of how many."""
        n_changed = 0
        for start in range(0, len(self.order), size):
            chosen = self.order[start : start + size]
            for value, said in zip(self.copies.values, self.decisions, strict=True):
                said += self._decide(chosen, value)
            batch = zip(*(same[start:] for same in self.decisions), strict=True)
            n_changed += sum(any(one != row[0] for one in row) for row in batch)
            yield n_changed, start + len(chosen)

    def judge(self, stop: _Stop, sampled: str, library: str | None) -> FlipTestResult:
        """Return the result. Raises PredictError if the positive decision never occurs."""
        rows = self.order[: len(self.decisions[0])]
        try:
            check_pos_label(self.decisions, self.question.pos_label)
        except InputError as error:
            raise self.fail(error) from error
        result = judge(
            self.decisions,
            self.question,
            feature=self.copies.feature,
            values=self.copies.values,
            rows=rows,
            inputs=self.copies.rows(rows).to_native(),
            is_anytime=stop.half_width is not None,
            sampled=sampled,
            notes=self.copies.notes(),
            frame_library=library,
        )
        if stop.half_width is None or stop.is_narrow(result.n_changed, result.n):
            return result
        more = f"The rows ended before the interval was as narrow as ± {stop.half_width:g}."
        return replace(result, notes=(more, *result.notes))

    def _decide(self, chosen: Places, value: Hashable) -> list[Hashable]:
        rows = self.copies.copy(chosen, value)
        try:
            found = self.model(rows)
            return read_decisions("predict", found, len(chosen), self.question.threshold)
        except FairpermError as error:
            raise self.fail(error) from error
        except Exception as error:
            got = Shown(f"{type(error).__name__}: {error}")
            failure = InputError("predict", "able to decide on rows like these", got)
            raise self.fail(failure) from error

    def fail(self, error: FairpermError) -> PredictError:
        """Return the error with what was computed until then."""
        marked = (
            error.marked_text() if isinstance(error, InputError | InputTypeError) else str(error)
        )
        n = sum(map(len, self.decisions))
        failure = PredictError(
            f"{marked} The error's outcomes have the {n:,} decisions made before."
        )
        columns: dict[str, list[Any]] = {
            "row": [row for same in self.decisions for row in self.order[: len(same)].tolist()],
            "value": [
                value
                for value, same in zip(self.copies.values, self.decisions, strict=True)
                for _ in same
            ],
            "decision": [one for same in self.decisions for one in same],
        }
        failure.outcomes = frame_of(columns, None, library_of(self.copies.frame.to_native()))
        return failure


def _find_model(predict: object) -> Callable[[Any], Any]:
    found = predict if callable(predict) else getattr(predict, "predict", None)
    if not callable(found) or isinstance(predict, type):
        rule = "a function of rows, or a fitted estimator"
        raise InputTypeError("predict", rule, predict)
    return found


def _choose_rows(n_rows: int, n: int | None, seed: int, *, all_rows: bool) -> Places:
    """Return the rows to use, in their order: all as they come, or so many at random."""
    if n is not None and n > n_rows:
        raise InputError("n", f"at most the {n_rows:,} rows of {argument('data')}", n)
    if all_rows and n in (None, n_rows):
        return np.arange(n_rows)
    return np.random.default_rng([seed, 0]).permutation(n_rows)[:n]
