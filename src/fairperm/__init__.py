"""Tell whether the gap between two groups, in any metric of a model, is real or chance."""

from fairperm import datasets
from fairperm.bootstrap import bootstrap_test
from fairperm.correlation import CorrelationTestResult, correlation_test
from fairperm.errors import FairpermError, FairpermWarning, InputError, InputTypeError
from fairperm.metrics import metric_names, register_metric
from fairperm.permutation import permutation_test
from fairperm.results import BootstrapTestResult, PermutationTestResult

__all__ = [
    "BootstrapTestResult",
    "CorrelationTestResult",
    "FairpermError",
    "FairpermWarning",
    "InputError",
    "InputTypeError",
    "PermutationTestResult",
    "bootstrap_test",
    "correlation_test",
    "datasets",
    "metric_names",
    "permutation_test",
    "register_metric",
]
