"""The result of an audit, with methods to filter, plot and write it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, SupportsIndex

from fairperm._utils.checks import choice
from fairperm._utils.formatting import drop_decimals, format_name
from fairperm._utils.optional import optional
from fairperm.auditing.text import as_text
from fairperm.data.columns import frame_of
from fairperm.errors import InputError, Shown
from fairperm.hypothesis_tests.results.audits import (
    VERDICTS,
    AuditData,
    AuditRow,
    GroupSummary,
    RowCounts,
)
from fairperm.hypothesis_tests.results.changes import CHANGE_VERDICTS
from fairperm.hypothesis_tests.results.gaps import json_ready
from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult
from fairperm.metrics.distances import get_distance
from fairperm.metrics.rankings import get_ranking_metric
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from os import PathLike

    from altair import LayerChart, VConcatChart
    from huggingface_hub import EvalResult


__all__ = ["Audit"]

_NOT_IN_KEYS = re.compile(r"[^\w.\- :]", re.ASCII)
_LONGEST_KEY = 200  # MLflow takes 250 characters, of which numbers' names have at most 24
_NUMBERS = (
    *("first_rows", "first_value", "second_rows", "second_value", "difference", "difference_low"),
    *("difference_high", "ratio", "pvalue", "adjusted_pvalue", "detectable_gap"),
    *("first_value_new", "second_value_new", "gap_new", "change", "change_low", "change_high"),
    *("change_pvalue", "change_adjusted_pvalue", "adjusted_size_pvalue"),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Audit(AuditData):
    """The result of :func:`fairperm.audit`.

    Attributes
    ----------
    rows : tuple of AuditRow
        Every comparison, in the order of attributes, metrics and groups.
    omnibus : tuple of OmnibusRow
        For every attribute and metric, the test of all its groups at once.
    groups : tuple of GroupSummary
        Every group of every attribute, also those too small to judge.
    row_counts : tuple of RowCounts
        For every attribute, the numbers of rows that were read, dropped and used.
    alpha : float
        The level of the verdicts.
    adjust : str or None
        How p-values were adjusted for the number of hypotheses, ``n_hypotheses``.
    families : dict
        The number of hypotheses of each attribute if it is a family of its own; empty if all
        hypotheses were adjusted together.
    compare : str
        Which groups were compared: "pairs", "reference" or "rest".
    min_group_size, group_size_by : int, str
        Groups with fewer rows are not judged; "metric" counts those that the metric's value rests
        on, "rows" all.
    n_dropped : int
        Rows dropped for missing values, in the comparison that lost most. A row is dropped only
        from the comparisons of attributes and metrics whose columns it lacks.
    seed : int
        Passing it as ``rng`` gives the same audit again.
    settings : dict
        The other arguments; a threshold only if it made predictions of scores.
    notes : tuple of str
        Remarks that the reader of the audit should know.
    """

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[AuditRow]:
        return iter(self.rows)

    def where(
        self,
        *,
        verdict: str | None = None,
        attribute: str | None = None,
        metric: str | None = None,
    ) -> Audit:
        """Return the audit with only the rows of this verdict, attribute or metric.

        Verdicts and adjusted p-values stay those of the whole audit. A metric may be given by an
        alias, such as "fpr".
        """
        metrics = [
            name
            for kind in ("metrics", "distances", "rankings")
            for name in self.settings.get(kind) or ()
        ]
        if isinstance(metric, str) and metric not in metrics:
            metric = _find_name(metric, metrics)
        wanted = {
            "verdict": (verdict, VERDICTS),
            "attribute": (attribute, tuple(self.settings["attributes"])),
            "metric": (metric, tuple(metrics)),
        }
        rows = self.rows
        for name, (value, known) in wanted.items():
            if value is not None:
                choice(name, value, known)
                rows = tuple(row for row in rows if getattr(row, name) == value)
        return replace(self, rows=rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as JSON-ready values, without the null distributions' draws.

        :meth:`from_dict` reads them back.
        """
        plain: dict[str, Any] = {"answer": self.answer}
        plain |= {
            name: json_ready(getattr(self, name))
            for name in AuditData.__slots__
            if name not in {"rows", "omnibus", "groups", "row_counts", "library"}
        }
        plain["row_counts"] = [
            {name: json_ready(getattr(one, name)) for name in RowCounts.__slots__}
            for one in self.row_counts
        ]
        plain["groups"] = [
            {name: json_ready(getattr(one, name)) for name in GroupSummary.__slots__}
            for one in self.groups
        ]
        plain["omnibus"] = [one.to_dict() for one in self.omnibus]
        plain["rows"] = [row.to_dict() for row in self.rows]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Audit:
        """Return an audit from the values of :meth:`to_dict`, for a report on another machine.

        Everything is as it was but the draws of null distributions, which are not written. Names
        of groups that JSON has no type for, such as dates, are strings.

        Examples
        --------
        >>> import fairperm, json
        >>> compas = fairperm.datasets.load_compas()
        >>> audit = fairperm.audit(
        ...     "two_year_recid", y_score="decile_score", threshold=5, data=compas,
        ...     sensitive_features="sex", metrics="fpr", rng=1,
        ... )
        >>> text = json.dumps(audit.to_dict())
        >>> len(fairperm.Audit.from_dict(json.loads(text)))
        1
        """
        from fairperm.hypothesis_tests.results.reading import read_audit

        try:
            return read_audit(cls, plain)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            rule = "what Audit.to_dict() returns"
            hint = "It may be from another version of fairperm."
            raise InputError("plain", rule, Shown(type(plain).__name__), hint) from error

    def to_metrics(self) -> dict[str, float]:
        """Return the numbers as a flat dict, for trackers of experiments such as MLflow.

        Keys are "attribute/metric/first vs second/number", and "verdicts/disparity" and so on for
        the numbers of verdicts; of two models, "changes/widened" and so on. Characters that MLflow
        does not allow are underscores, and long names are cut. What has no finite value is left
        out.

        Examples
        --------
        >>> import fairperm
        >>> compas = fairperm.datasets.load_compas()
        >>> audit = fairperm.audit(
        ...     "two_year_recid", y_score="decile_score", threshold=5, data=compas,
        ...     sensitive_features="sex", metrics="fpr", rng=1,
        ... )
        >>> found = audit.to_metrics()
        >>> round(found["sex/false_positive_rate/Female vs Male/difference"], 3)
        -0.001
        >>> found["verdicts/inconclusive"]
        1.0
        """
        found: dict[str, float] = {}
        for verdict in VERDICTS:
            n = sum(row.verdict == verdict for row in self.rows)
            found[f"verdicts/{verdict.replace(' ', '_')}"] = float(n)
        changes = [row.change.verdict for row in self.rows if row.change is not None]
        for verdict in CHANGE_VERDICTS if changes else ():
            found[f"changes/{verdict.replace(' ', '_')}"] = float(changes.count(verdict))
        known: set[str] = set()
        for row in self.rows:
            groups = " vs ".join(format_name(drop_decimals(group)) for group in row.groups)
            parts = (_NOT_IN_KEYS.sub("_", one) for one in (row.attribute, row.metric, groups))
            # no part may be "." or "..", as in a path
            name = "/".join(one.strip(".") or "_" for one in parts)[:_LONGEST_KEY]
            while name in known:  # names that differ only in other characters
                name += "_"
            known.add(name)
            for key, value in row.cells().items():
                if key in _NUMBERS and value is not None and math.isfinite(value):
                    found[f"{name}/{key}"] = float(value)
        return found

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with a row for each comparison.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame: by default that of `data`, or pandas.
        """
        names = list(self.rows[0].cells()) if self.rows else list(_NO_ROW.cells())
        cells = [row.cells() for row in self.rows]
        columns = {name: _unify_numbers([row[name] for row in cells]) for name in names}
        return frame_of(columns, library, self.library)

    def plot(
        self, *, title: str | None = None, width: int = 700, mode: str = "auto"
    ) -> VConcatChart:
        """Draw every gap with its interval and verdict: :func:`fairperm.plots.forest`.

        Distances have no interval, and are left out.
        """
        from fairperm import plots

        rows = [
            row.cells() | {"first_group": row.groups[0], "second_group": row.groups[1]}
            for row in self.rows
            if not row.is_distance
        ]
        level = self.settings.get("confidence_level")
        return plots.forest(rows, confidence_level=level, title=title, width=width, mode=mode)

    def plot_null(self, row: int | AuditRow, **options: Any) -> LayerChart:
        """Draw the null distribution of a row, given by its number or itself.

        `options` are those of :meth:`fairperm.PermutationTestResult.plot`.
        """
        one = self.rows[row] if isinstance(row, SupportsIndex) else row
        if one.result is None:
            rule = "a row with a result"
            raise InputError("row", rule, one.groups, one.reason)
        return one.result.plot(**options)

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        sweep: ThresholdSweepResult | Iterable[ThresholdSweepResult] | None = None,
        title: str | None = None,
        author: str | None = None,
        note: str | None = None,
        positive_means: str | None = None,
        negative_means: str | None = None,
        rename: Mapping[str, Mapping[Any, str]] | None = None,
        short: bool = False,
        provenance: Mapping[str, object] | None = None,
    ) -> str:
        """Return a report that needs no other file and no network; with a `path`, write it too.

        Parameters
        ----------
        path : path-like, optional
            The file to write, atomically.
        sweep : ThresholdSweepResult, PairSweeps or sequence of ThresholdSweepResult, optional
            Results of :func:`fairperm.threshold_sweep` or :func:`fairperm.sweep_pairs`, shown with
            a slider.
        title, author, note : str, optional
            The report's heading, who wrote it, and a remark at its beginning.
        positive_means : str, optional
            What a positive label means, to complete "people who …": "repaid the loan".
        negative_means : str, optional
            What any other label means, in the same way: "did not repay the loan".
        rename : mapping, optional
            Names for groups, by attribute and value: ``{"sex": {"M": "men", "F": "women"}}``.
        short : bool
            Whether to leave out the table of all comparisons, thresholds, power and method.
        provenance : mapping, optional
            What else is needed to repeat the audit, by name; "file" and "command" have places of
            their own in the report.

        Examples
        --------
        >>> import fairperm
        >>> compas = fairperm.datasets.load_compas()
        >>> audit = fairperm.audit(
        ...     "two_year_recid", y_score="decile_score", threshold=5, data=compas,
        ...     sensitive_features="sex", metrics="fpr", rng=1,
        ... )
        >>> html = audit.to_html(
        ...     author="A. Auditor", positive_means="were arrested again within two years",
        ...     rename={"sex": {"Male": "men", "Female": "women"}}, short=True,
        ... )
        """
        from fairperm.report.page import as_html
        from fairperm.report.presentation import Presentation

        presentation = Presentation(
            title=title,
            author=author,
            note=note,
            positive_means=positive_means,
            negative_means=negative_means,
            rename=rename,
            short=short,
        )
        return as_html(
            self,
            path,
            presentation=presentation,
            sweep=sweep,
            not_swept=getattr(sweep, "not_swept", None),
            provenance=provenance,
            defaults=list_defaults(self.settings),
        )

    def to_model_card(self) -> str:
        """Return a section of a model card, in Markdown and without a heading.

        Examples
        --------
        >>> import fairperm
        >>> compas = fairperm.datasets.load_compas()
        >>> audit = fairperm.audit(
        ...     "two_year_recid", y_score="decile_score", threshold=5, data=compas,
        ...     sensitive_features="sex", metrics="fpr", rng=1,
        ... )
        >>> print(audit.to_model_card())
        Male's false positive rate is 0.1 points higher than Female's (30.3 % v 30.2 %); ...
        """
        from fairperm.auditing.model_card import as_model_card

        return as_model_card(self)

    def to_eval_results(
        self,
        *,
        task_type: str,
        dataset_type: str,
        dataset_name: str,
        dataset_split: str | None = None,
        dataset_revision: str | None = None,
    ) -> list[EvalResult]:
        """Return the value of each metric in each group for the head of a Hugging Face model card.

        The group is the dataset's configuration, as in "sex=Female". Groups that are too small have
        no results. Verdicts are in :meth:`to_model_card`.

        Parameters
        ----------
        task_type, dataset_type, dataset_name, dataset_split, dataset_revision : str
            As in ``huggingface_hub.EvalResult``: "tabular-classification", the identifier of the
            data, their name, and which rows were audited.

        Returns
        -------
        list of huggingface_hub.EvalResult
        """
        from fairperm.auditing.model_card import as_eval_results

        return as_eval_results(
            self,
            task_type=task_type,
            dataset_type=dataset_type,
            dataset_name=dataset_name,
            dataset_split=dataset_split,
            dataset_revision=dataset_revision,
        )

    def log_to_mlflow(self) -> None:
        """Log metrics, JSON and the report to the active run of MLflow.

        As with MLflow's own functions, a run begins if none is active. Metrics are those of
        :meth:`to_metrics`, and the artifacts ``fairperm/audit.json`` and ``fairperm/audit.html``.
        """
        with optional("log_to_mlflow"):
            import mlflow
        mlflow.log_metrics(self.to_metrics())
        mlflow.log_dict(self.to_dict(), "fairperm/audit.json")
        mlflow.log_text(self.to_html(), "fairperm/audit.html")

    def _repr_html_(self) -> str:
        from fairperm.report.page import as_notebook_html

        return as_notebook_html(self)

    def __repr__(self) -> str:
        return as_text(self)


def list_defaults(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the defaults of the arguments of an audit with these settings."""
    from fairperm.auditing.audit import audit, default_min_group_size

    defaults = {one.name: one.default for one in signature(audit).parameters.values()}
    return defaults | {"min_group_size": default_min_group_size(settings)}


def _find_name(alias: str, names: Sequence[str]) -> str:
    """Return the name that is meant by an alias, or by "ndcg" if only "ndcg@10" has it."""
    for find in (get_metric, get_distance, get_ranking_metric):
        with suppress(InputError):  # the caller names the metrics of this audit
            full = find(alias).name
            meant = [one for one in names if full in {one, one.partition("@")[0]}]
            if len(meant) == 1:
                return meant[0]
    return alias


def _unify_numbers(values: list[Any]) -> list[Any]:
    """Return a column with floats in place of integers if it has both: sums of weights may."""
    if not any(isinstance(one, float) for one in values):
        return values
    return [float(one) if isinstance(one, int) else one for one in values]


_NO_ROW = AuditRow(attribute="", metric="", groups=("", ""), sizes=(0, 0), result=None)
