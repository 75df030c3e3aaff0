"""Metrics: one short definition each, known by name, alias or function."""

from fairperm.metrics.custom import register_metric
from fairperm.metrics.inequality import atkinson_index, generalized_entropy_index
from fairperm.metrics.numbers import pinball_loss
from fairperm.metrics.registry import get_metric, metric_names

__all__ = [
    "atkinson_index",
    "generalized_entropy_index",
    "get_metric",
    "metric_names",
    "pinball_loss",
    "register_metric",
]
