"""Test whether the gap between two groups, in any metric of a model, is real or chance."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairperm import datasets, plots
    from fairperm.auditing.audit import audit
    from fairperm.auditing.pair_sweeps import PairSweeps, sweep_pairs
    from fairperm.auditing.period_result import PeriodAudit, PeriodRow
    from fairperm.auditing.periods import audit_periods
    from fairperm.auditing.result import Audit
    from fairperm.counterfactual.flips import flip_test
    from fairperm.counterfactual.result import FlipPair, FlipTestResult
    from fairperm.errors import (
        FairpermError,
        FairpermWarning,
        InputError,
        InputTypeError,
        MissingPartError,
        PredictError,
        UndefinedMetricError,
    )
    from fairperm.hypothesis_tests.changes.models import compare_models
    from fairperm.hypothesis_tests.changes.periods import compare_periods
    from fairperm.hypothesis_tests.correlation import CorrelationTestResult, correlation_test
    from fairperm.hypothesis_tests.distances import distance_test
    from fairperm.hypothesis_tests.margins.equivalence import equivalence_test, noninferiority
    from fairperm.hypothesis_tests.omnibus import omnibus_test
    from fairperm.hypothesis_tests.permutation import permutation_test
    from fairperm.hypothesis_tests.rankings.rankings import ranking_test
    from fairperm.hypothesis_tests.results.audits import (
        AuditRow,
        GroupSummary,
        OmnibusRow,
        RowCounts,
    )
    from fairperm.hypothesis_tests.results.changes import (
        GapChange,
        GroupChange,
        ModelComparisonResult,
        PeriodChange,
        PeriodComparisonResult,
    )
    from fairperm.hypothesis_tests.results.distances import DistanceComparison, DistanceTestResult
    from fairperm.hypothesis_tests.results.equivalence import EquivalenceTestResult
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
    from fairperm.hypothesis_tests.results.proxies import ProxyTestResult
    from fairperm.hypothesis_tests.results.rankings import (
        ListDivergence,
        RankingComparison,
        RankingTestResult,
    )
    from fairperm.hypothesis_tests.results.sweeps import MetricSweep, ThresholdSweepResult
    from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
    from fairperm.integrations.sklearn import make_gap_scorer
    from fairperm.metrics import metric_names, register_metric
    from fairperm.monitoring.monitor import Monitor
    from fairperm.monitoring.results import Drift, MonitoredGap
    from fairperm.planning.calibration import Calibration, calibrate
    from fairperm.planning.power import minimum_detectable_gap, power, sample_size
    from fairperm.planning.simulated_power import SimulatedPower, simulated_power
    from fairperm.selection.audit import selection_audit
    from fairperm.selection.result import SelectionAudit, SelectionRow
    from fairperm.subgroups.features import Band
    from fairperm.subgroups.result import Subgroup, Subgroups
    from fairperm.subgroups.search import find_subgroups

__all__ = [
    "Audit",
    "AuditRow",
    "Band",
    "Calibration",
    "CorrelationTestResult",
    "DistanceComparison",
    "DistanceTestResult",
    "Drift",
    "EquivalenceTestResult",
    "FairpermError",
    "FairpermWarning",
    "FlipPair",
    "FlipTestResult",
    "GapChange",
    "GroupChange",
    "GroupSummary",
    "InputError",
    "InputTypeError",
    "ListDivergence",
    "MetricSweep",
    "MissingPartError",
    "ModelComparisonResult",
    "Monitor",
    "MonitoredGap",
    "OmnibusRow",
    "OmnibusTestResult",
    "PairSweeps",
    "PeriodAudit",
    "PeriodChange",
    "PeriodComparisonResult",
    "PeriodRow",
    "PermutationTestResult",
    "PredictError",
    "ProxyTestResult",
    "RankingComparison",
    "RankingTestResult",
    "RowCounts",
    "SelectionAudit",
    "SelectionRow",
    "SimulatedPower",
    "Subgroup",
    "Subgroups",
    "ThresholdSweepResult",
    "UndefinedMetricError",
    "audit",
    "audit_periods",
    "calibrate",
    "compare_models",
    "compare_periods",
    "correlation_test",
    "datasets",
    "distance_test",
    "equivalence_test",
    "find_subgroups",
    "flip_test",
    "make_gap_scorer",
    "metric_names",
    "minimum_detectable_gap",
    "noninferiority",
    "omnibus_test",
    "permutation_test",
    "plots",
    "power",
    "ranking_test",
    "register_metric",
    "sample_size",
    "selection_audit",
    "simulated_power",
    "sweep_pairs",
    "threshold_sweep",
]

# A name is imported when it is first used: `fairperm --help` does not wait for NumPy.
_HOMES = {
    "auditing.audit": "audit",
    "auditing.pair_sweeps": "PairSweeps sweep_pairs",
    "auditing.period_result": "PeriodAudit PeriodRow",
    "auditing.periods": "audit_periods",
    "auditing.result": "Audit",
    "counterfactual.flips": "flip_test",
    "counterfactual.result": "FlipPair FlipTestResult",
    "errors": (
        "FairpermError FairpermWarning InputError InputTypeError MissingPartError PredictError "
        "UndefinedMetricError"
    ),
    "hypothesis_tests.changes.models": "compare_models",
    "hypothesis_tests.changes.periods": "compare_periods",
    "hypothesis_tests.correlation": "CorrelationTestResult correlation_test",
    "hypothesis_tests.distances": "distance_test",
    "hypothesis_tests.margins.equivalence": "equivalence_test noninferiority",
    "hypothesis_tests.omnibus": "omnibus_test",
    "hypothesis_tests.permutation": "permutation_test",
    "hypothesis_tests.rankings.rankings": "ranking_test",
    "hypothesis_tests.results.audits": "AuditRow GroupSummary OmnibusRow RowCounts",
    "hypothesis_tests.results.changes": (
        "GapChange GroupChange ModelComparisonResult PeriodChange PeriodComparisonResult"
    ),
    "hypothesis_tests.results.distances": "DistanceComparison DistanceTestResult",
    "hypothesis_tests.results.equivalence": "EquivalenceTestResult",
    "hypothesis_tests.results.gaps": "PermutationTestResult",
    "hypothesis_tests.results.omnibus": "OmnibusTestResult",
    "hypothesis_tests.results.proxies": "ProxyTestResult",
    "hypothesis_tests.results.rankings": "ListDivergence RankingComparison RankingTestResult",
    "hypothesis_tests.results.sweeps": "MetricSweep ThresholdSweepResult",
    "hypothesis_tests.sweep.threshold_sweep": "threshold_sweep",
    "integrations.sklearn": "make_gap_scorer",
    "metrics": "metric_names register_metric",
    "monitoring.monitor": "Monitor",
    "monitoring.results": "Drift MonitoredGap",
    "planning.calibration": "Calibration calibrate",
    "planning.power": "minimum_detectable_gap power sample_size",
    "planning.simulated_power": "SimulatedPower simulated_power",
    "selection.audit": "selection_audit",
    "selection.result": "SelectionAudit SelectionRow",
    "subgroups.features": "Band",
    "subgroups.result": "Subgroup Subgroups",
    "subgroups.search": "find_subgroups",
}
_MODULES = {"datasets", "errors", "metrics", "plots", "report", "testing"}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a public name, or a module of the package."""
        if name in _HOME_OF:
            value = getattr(import_module(f"fairperm.{_HOME_OF[name]}"), name)
        elif name in _MODULES:
            value = import_module(f"fairperm.{name}")
        else:
            raise AttributeError(f"module 'fairperm' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_MODULES})
