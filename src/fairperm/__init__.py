"""Tell whether the gap between two groups, in any metric of a model, is real or chance."""

from fairperm import datasets
from fairperm.audit_result import Audit
from fairperm.auditing import audit
from fairperm.bootstrap import bootstrap_test
from fairperm.correlation import CorrelationTestResult, correlation_test
from fairperm.equivalence import EquivalenceTestResult, equivalence_test, noninferiority
from fairperm.errors import (
    FairpermError,
    FairpermWarning,
    InputError,
    InputTypeError,
    UndefinedMetricError,
)
from fairperm.metrics import metric_names, register_metric
from fairperm.omnibus import OmnibusTestResult, omnibus_test
from fairperm.permutation import permutation_test
from fairperm.planning import minimum_detectable_gap, power, sample_size
from fairperm.results import BootstrapTestResult, PermutationTestResult
from fairperm.simulation import SimulatedPower, simulated_power
from fairperm.sweep import MetricSweep, ThresholdSweepResult, threshold_sweep

__all__ = [
    "Audit",
    "BootstrapTestResult",
    "CorrelationTestResult",
    "EquivalenceTestResult",
    "FairpermError",
    "FairpermWarning",
    "InputError",
    "InputTypeError",
    "MetricSweep",
    "OmnibusTestResult",
    "PermutationTestResult",
    "SimulatedPower",
    "ThresholdSweepResult",
    "UndefinedMetricError",
    "audit",
    "bootstrap_test",
    "correlation_test",
    "datasets",
    "equivalence_test",
    "metric_names",
    "minimum_detectable_gap",
    "noninferiority",
    "omnibus_test",
    "permutation_test",
    "power",
    "register_metric",
    "sample_size",
    "simulated_power",
    "threshold_sweep",
]
