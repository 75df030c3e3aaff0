"""COMPAS with all its features, Adult and German credit, from their original sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from fairperm.datasets.store import Original, read_files
from fairperm.datasets.tables import (
    Backend,
    check_backend,
    decode,
    make_columns,
    make_frame,
    parse_integers,
    read_records,
)

if TYPE_CHECKING:
    from fairperm.datasets.tables import Columns, Record

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_COMPAS = Original(
    "compas-scores-two-years.csv",
    "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
    "9165d40c400bba93a8cffece2b74622b",
)
_ADULT = (
    Original("adult.data", f"{_UCI}/adult/adult.data", "5d7c39d7b8804f071cdd1f2a7c460872"),
    Original("adult.test", f"{_UCI}/adult/adult.test", "35238206dfdf7f1fe215bbb874adecdc"),
)
_GERMAN = Original(
    "german.data", f"{_UCI}/statlog/german/german.data", "6b94c2e35480e671545e52a808a8a549"
)
ORIGINALS = (_COMPAS, *_ADULT, _GERMAN)
_COMPAS_COLUMNS = (
    *("sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count"),
    *("priors_count", "c_charge_degree", "c_charge_desc", "decile_score", "score_text"),
    "two_year_recid",
)
_COMPAS_FILTER = ("days_b_screening_arrest", "is_recid")
_ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
_INCOMES = {"<=50K": 0, ">50K": 1, "<=50K.": 0, ">50K.": 1}
_GERMAN_COLUMNS = (
    *("status", "duration", "credit_history", "purpose", "credit_amount", "savings", "employment"),
    *("installment_rate", "personal_status_sex", "other_debtors", "residence_since", "property"),
    *("age", "other_installment_plans", "housing", "existing_credits", "job", "num_liable"),
    *("telephone", "foreign_worker", "class"),
)
_GERMAN_SEXES = {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}
_INTEGERS = {  # of all three data sets
    *("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("decile_score", "fnlwgt", "education-num", "capital-gain", "capital-loss"),
    *("hours-per-week", "duration", "credit_amount", "installment_rate", "residence_since"),
    *("existing_credits", "num_liable"),
}


@overload
def fetch_compas(backend: None = None) -> dict[str, NDArray[Any]]: ...
@overload
def fetch_compas(backend: Backend) -> Any: ...
def fetch_compas(backend: Backend | None = None) -> Any:
    """Fetch the COMPAS data with the features needed to train a model: priors, charge, age.

    :func:`load_compas` has the scores, outcomes and groups, and needs no network.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow"}, optional
        The kind of data frame to return; by default, a dict of NumPy arrays.

    Returns
    -------
    dict of str to numpy.ndarray, or a data frame of the backend
        One row for each of 6,172 defendants, in the order of the file, by ProPublica's published
        filter. The target is ``two_year_recid``; the sensitive columns are ``sex``,
        ``race``, ``age_cat`` and ``age``.

        - ``sex``: "Female" or "Male".
        - ``age``: in years; ``age_cat``: "Less than 25", "25 - 45" or "Greater than 45".
        - ``race``: as the sheriff's office recorded it.
        - ``juv_fel_count``, ``juv_misd_count``, ``juv_other_count``: juvenile felonies,
          misdemeanors and other offences; ``priors_count``: earlier charges.
        - ``c_charge_degree``: "F" (felony) or "M" (misdemeanor); ``c_charge_desc``: description of
          the charge, None in five rows.
        - ``decile_score``: the COMPAS risk from 1 (lowest) to 10; ``score_text``: "Low",
          "Medium" or "High".
        - ``two_year_recid``: 1 if charged with a new crime within two years, else 0.

    Notes
    -----
    :class:`DataUnavailableError` says where the file of ProPublica's repository is looked for. It
    contains names and dates of birth of real people, which are not returned. :func:`load_compas`
    explains what the data mean and what they do not.

    Examples
    --------
    >>> from fairperm.datasets import fetch_compas
    >>> compas = fetch_compas()  # doctest: +SKIP
    >>> round(float(compas["priors_count"].mean()), 3)  # doctest: +SKIP
    3.246
    """
    backend = check_backend(backend)
    ((file, content),) = read_files(_COMPAS).items()
    records = read_records(content, file, (*_COMPAS_COLUMNS, *_COMPAS_FILTER))
    records = [one for one in records if _passes_propublica_filter(one, file)]
    columns = make_columns(records, file, _COMPAS_COLUMNS[:-1], _INTEGERS)
    columns["two_year_recid"] = np.array(
        decode(records, "two_year_recid", file, {"0": 0, "1": 1}), np.int64
    )
    return make_frame(columns, backend)


@overload
def fetch_adult(backend: None = None) -> dict[str, NDArray[Any]]: ...
@overload
def fetch_adult(backend: Backend) -> Any: ...
def fetch_adult(backend: Backend | None = None) -> Any:
    """Fetch UCI's Adult data: which of 48,842 people earned over 50,000 dollars a year in 1994.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow"}, optional
        The kind of data frame to return; by default, a dict of NumPy arrays.

    Returns
    -------
    dict of str to numpy.ndarray, or a data frame of the backend
        One row for each person. The target is ``income``; the sensitive columns are ``sex``,
        ``race``, ``age`` and ``native-country``. Missing values ("?" in the files) are None.

        - ``age``, ``education-num`` (years of education, roughly), ``capital-gain``,
          ``capital-loss``, ``hours-per-week``: integers; ``fnlwgt``: how many people the row
          represents in the census, which is not a feature of the person.
        - ``workclass``, ``occupation``, ``native-country``: text or None.
        - ``education``, ``marital-status``, ``relationship``: text.
        - ``race``: "Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other" or "White".
        - ``sex``: "Female" or "Male".
        - ``income``: 1 if over 50,000 dollars a year, else 0.
        - ``split``: "train" (32,561 rows) or "test" (16,281): UCI's own split.

    Notes
    -----
    The licence is CC BY 4.0 (B. Becker and R. Kohavi, "Adult", UCI Machine Learning Repository,
    1996, doi:10.24432/C5XW20). :class:`DataUnavailableError` says where the files are looked for.

    Examples
    --------
    >>> from fairperm.datasets import fetch_adult
    >>> adult = fetch_adult()  # doctest: +SKIP
    >>> round(float(adult["income"][adult["sex"] == "Female"].mean()), 3)  # doctest: +SKIP
    0.109
    """
    backend = check_backend(backend)
    parts: list[Columns] = []
    for file, content in read_files(*_ADULT).items():
        records = read_records(content, file, header=_ADULT_COLUMNS, skipinitialspace=True)
        part = make_columns(records, file, _ADULT_COLUMNS[:-1], _INTEGERS, missing="?")
        part["income"] = np.array(decode(records, "income", file, _INCOMES), np.int64)
        half = "train" if file == "adult.data" else "test"
        part["split"] = np.full(len(records), half, object)
        parts.append(part)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return make_frame(columns, backend)


@overload
def fetch_german(backend: None = None) -> dict[str, NDArray[Any]]: ...
@overload
def fetch_german(backend: Backend) -> Any: ...
def fetch_german(backend: Backend | None = None) -> Any:
    """Fetch the German credit data: which of 1,000 loans of a bank in the 1970s went bad.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow"}, optional
        The kind of data frame to return; by default, a dict of NumPy arrays.

    Returns
    -------
    dict of str to numpy.ndarray, or a data frame of the backend
        One row for each loan. The target is ``bad_risk``; the sensitive columns are ``sex``,
        ``age`` and ``foreign_worker``. UCI's ``german.doc`` explains the codes.

        - ``duration`` (months), ``credit_amount`` (Deutsche Mark), ``installment_rate``,
          ``residence_since``, ``age``, ``existing_credits``, ``num_liable``: integers.
        - ``status`` (of the account), ``credit_history``, ``purpose``, ``savings``,
          ``employment``, ``personal_status_sex``, ``other_debtors``, ``property``,
          ``other_installment_plans``, ``housing``, ``job``, ``telephone``, ``foreign_worker``:
          codes such as "A11".
        - ``bad_risk``: 1 if the file's class is 2 (bad), 0 if it is 1 (good).
        - ``sex``: "female" or "male", from ``personal_status_sex``; see the notes.

    Notes
    -----
    ``sex`` follows the code table in ``german.doc`` and is widely used. According to Grömping
    (2019), that table is wrong: the code A92, "female", includes unmarried men, so the sex cannot
    be known from these data. Bad loans (300) are over-represented on purpose.

    The licence is CC BY 4.0 (H. Hofmann, "Statlog (German Credit Data)", UCI Machine Learning
    Repository, 1994, doi:10.24432/C5NC77). :class:`DataUnavailableError` says where the file is
    looked for.

    References
    ----------
    U. Grömping, "South German Credit Data: Correcting a Widely Used Data Set", report 4/2019,
    Beuth University of Applied Sciences Berlin, 2019.

    Examples
    --------
    >>> from fairperm.datasets import fetch_german
    >>> german = fetch_german()  # doctest: +SKIP
    >>> int(german["bad_risk"].sum())  # doctest: +SKIP
    300
    """
    backend = check_backend(backend)
    ((file, content),) = read_files(_GERMAN).items()
    records = read_records(content, file, header=_GERMAN_COLUMNS, delimiter=" ")
    columns = make_columns(records, file, _GERMAN_COLUMNS[:-1], _INTEGERS)
    columns["bad_risk"] = np.array(decode(records, "class", file, {"1": 0, "2": 1}), np.int64)
    sexes = decode(records, "personal_status_sex", file, _GERMAN_SEXES)
    columns["sex"] = np.array(sexes, object)
    return make_frame(columns, backend)


def _passes_propublica_filter(record: Record, file: str) -> bool:
    """Whether ProPublica's published analysis keeps this row."""
    name = "days_b_screening_arrest"
    return (
        record[name] != ""  # R's filter drops missing values
        and -30 <= parse_integers([record[name]], name, file)[0] <= 30
        and record["is_recid"] != "-1"
        and record["c_charge_degree"] != "O"
        and record["score_text"] != "N/A"
    )
