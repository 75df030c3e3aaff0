"""Tell whether the gap between two groups, in any metric of a model, is real or chance."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairperm import datasets, plots
    from fairperm._omnibus_result import OmnibusTestResult
    from fairperm.audit_result import Audit
    from fairperm.auditing import audit
    from fairperm.bootstrap import bootstrap_test
    from fairperm.calibration import Calibration, calibrate
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
    from fairperm.omnibus import omnibus_test
    from fairperm.permutation import permutation_test
    from fairperm.planning import minimum_detectable_gap, power, sample_size
    from fairperm.results import BootstrapTestResult, PermutationTestResult
    from fairperm.simulation import SimulatedPower, simulated_power
    from fairperm.sweep import MetricSweep, ThresholdSweepResult, threshold_sweep

__all__ = [
    "Audit",
    "BootstrapTestResult",
    "Calibration",
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
    "calibrate",
    "correlation_test",
    "datasets",
    "equivalence_test",
    "metric_names",
    "minimum_detectable_gap",
    "noninferiority",
    "omnibus_test",
    "permutation_test",
    "plots",
    "power",
    "register_metric",
    "sample_size",
    "simulated_power",
    "threshold_sweep",
]

# A name is imported when it is first used, so that `fairperm --help` does not wait for NumPy.
_HOMES = {
    "audit_result": "Audit",
    "auditing": "audit",
    "bootstrap": "bootstrap_test",
    "calibration": "Calibration calibrate",
    "correlation": "CorrelationTestResult correlation_test",
    "equivalence": "EquivalenceTestResult equivalence_test noninferiority",
    "errors": "FairpermError FairpermWarning InputError InputTypeError UndefinedMetricError",
    "metrics": "metric_names register_metric",
    "_omnibus_result": "OmnibusTestResult",
    "omnibus": "omnibus_test",
    "permutation": "permutation_test",
    "planning": "minimum_detectable_gap power sample_size",
    "results": "BootstrapTestResult PermutationTestResult",
    "simulation": "SimulatedPower simulated_power",
    "sweep": "MetricSweep ThresholdSweepResult threshold_sweep",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a public name, or a module of the package."""
        if name in _HOME_OF:
            value = getattr(import_module(f"fairperm.{_HOME_OF[name]}"), name)
        elif name in {"datasets", "plots", "simulate", "studies", *_HOMES}:
            value = import_module(f"fairperm.{name}")
        else:
            raise AttributeError(f"module 'fairperm' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_HOMES})
