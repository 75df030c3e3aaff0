"""The studies of the paper (DiCiccio et al., KDD 2020), run again: every table and figure."""

from __future__ import annotations

from studies.runner import NAMES, get_study, run
from studies.study import Row, Study

__all__ = ["NAMES", "Row", "Study", "get_study", "run"]
