"""Charts of what was found, by Altair, from plain numbers and names."""

from fairperm.plots.distribution_chart import distributions
from fairperm.plots.forest_chart import forest
from fairperm.plots.null_chart import null_distribution
from fairperm.plots.parts import theme
from fairperm.plots.period_chart import gap_over_time
from fairperm.plots.power_chart import power_curve
from fairperm.plots.slope_chart import slope
from fairperm.plots.subgroup_chart import subgroups
from fairperm.plots.sweep_chart import threshold_sweep

__all__ = [
    "distributions",
    "forest",
    "gap_over_time",
    "null_distribution",
    "power_curve",
    "slope",
    "subgroups",
    "theme",
    "threshold_sweep",
]
