"""COMPAS with all its features, Adult and German credit, from their original sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fairperm.datasets.store import Original, contents
from fairperm.datasets.tables import (
    Backend,
    checked_backend,
    coded,
    framed,
    numbers,
    objects,
    texts,
    with_header,
    without_header,
)
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairperm.datasets.tables import Columns, Record

__all__ = ["fetch_adult", "fetch_compas", "fetch_german"]

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
_COMPAS_NUMBERS = (
    *("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    "decile_score",
)
_COMPAS_COLUMNS = (
    *("sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count"),
    *("priors_count", "c_charge_degree", "c_charge_desc", "decile_score", "score_text"),
    "two_year_recid",
)
_COMPAS_FILTER = ("days_b_screening_arrest", "is_recid")
_ADULT_NUMBERS = (
    *("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
)
_ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
_INCOMES = {"<=50K": 0, ">50K": 1, "<=50K.": 0, ">50K.": 1}
_GERMAN_NUMBERS = (
    *("duration", "credit_amount", "installment_rate", "residence_since", "age"),
    *("existing_credits", "num_liable"),
)
_GERMAN_COLUMNS = (
    *("status", "duration", "credit_history", "purpose", "credit_amount", "savings", "employment"),
    *("installment_rate", "personal_status_sex", "other_debtors", "residence_since", "property"),
    *("age", "other_installment_plans", "housing", "existing_credits", "job", "num_liable"),
    *("telephone", "foreign_worker", "class"),
)
_GERMAN_SEXES = {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}


@overload
def fetch_compas(backend: None = None) -> dict[str, NDArray[Any]]: ...
@overload
def fetch_compas(backend: Backend) -> Any: ...
def fetch_compas(backend: Backend | None = None) -> Any:
    """Fetch the COMPAS data with the features of a model of one's own: priors, charge, age.

    :func:`load_compas` has the scores, outcomes and groups and needs no network; this is for
    training a model.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow"}, optional
        The kind of data frame to return. Without it, only NumPy is needed.

    Returns
    -------
    dict of str to numpy.ndarray, or a data frame of the backend
        One row for each of 6,172 defendants, in the order of the file (those of a ``compas.csv``
        of one's own may be fewer). The target is ``two_year_recid``; sensitive are ``sex``,
        ``race``, ``age_cat`` (and ``age``).

        - ``sex``: "Female" or "Male".
        - ``age``: in years; ``age_cat``: "Less than 25", "25 - 45" or "Greater than 45".
        - ``race``: as the sheriff's office recorded it.
        - ``juv_fel_count``, ``juv_misd_count``, ``juv_other_count``: juvenile felonies,
          misdemeanors and other offences; ``priors_count``: earlier charges.
        - ``c_charge_degree``: of the charge, "F" (felony) or "M" (misdemeanor);
          ``c_charge_desc``: its description; None in five rows.
        - ``decile_score``: the COMPAS risk from 1 (lowest) to 10; ``score_text``: "Low",
          "Medium" or "High".
        - ``two_year_recid``: 1 if charged with a new crime within two years, else 0.

    Raises
    ------
    DataUnavailableError
        If the data are not on this machine and cannot be downloaded.
    InputError
        If the backend or FAIRPERM_DATA is wrong, or a file in that folder is not what it should be.

    Notes
    -----
    The file is looked for in the folder that the environment variable FAIRPERM_DATA names, as
    ``compas-scores-two-years.csv`` or, cut down to the columns above, ``compas.csv``; then in the
    cache; then it is downloaded from ProPublica's repository, checked (md5) and kept in the cache.
    That file has names and dates of birth of real people, which are not returned. ProPublica's
    published filter is applied where the file still has the columns for it. What the data mean,
    and what they do not, is said at :func:`load_compas`.

    Examples
    --------
    >>> from fairperm.datasets import fetch_compas
    >>> compas = fetch_compas()  # doctest: +SKIP
    >>> round(float(compas["priors_count"].mean()), 3)  # doctest: +SKIP
    3.246
    """
    backend = checked_backend(backend)
    ((file, content),) = contents((_COMPAS,), "compas.csv").items()
    needed = (*_COMPAS_COLUMNS, *_COMPAS_FILTER) if file == _COMPAS.name else _COMPAS_COLUMNS
    records = with_header(content, file, needed)
    if records and set(_COMPAS_FILTER) <= records[0].keys():
        records = [one for one in records if _passes_propublica_filter(one, file)]
    columns = _columns(records, file, _COMPAS_COLUMNS[:-1], _COMPAS_NUMBERS)
    recid = coded(records, "two_year_recid", file, {"0": 0, "1": 1})
    columns["two_year_recid"] = np.array(recid, dtype=np.int64)
    return framed(columns, backend)


@overload
def fetch_adult(backend: None = None) -> dict[str, NDArray[Any]]: ...
@overload
def fetch_adult(backend: Backend) -> Any: ...
def fetch_adult(backend: Backend | None = None) -> Any:
    """Fetch UCI's Adult data: who of 48,842 people earned over 50,000 dollars a year in 1994.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow"}, optional
        The kind of data frame to return. Without it, only NumPy is needed.

    Returns
    -------
    dict of str to numpy.ndarray, or a data frame of the backend
        One row for each person. The target is ``income``; sensitive are ``sex``, ``race`` (and
        ``age``, ``native-country``). Missing values ("?" in the files) are None.

        - ``age``, ``education-num`` (years of education, roughly), ``capital-gain``,
          ``capital-loss``, ``hours-per-week``: integers; ``fnlwgt``: how many people the census
          takes the row to stand for, which is no feature of the person.
        - ``workclass``, ``occupation``, ``native-country``: text or None.
        - ``education``, ``marital-status``, ``relationship``: text.
        - ``race``: "Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other" or "White".
        - ``sex``: "Female" or "Male".
        - ``income``: 1 if over 50,000 dollars a year, else 0.
        - ``split``: "train" (32,561 rows) or "test" (16,281), as UCI has them.

    Raises
    ------
    DataUnavailableError
        If the data are not on this machine and cannot be downloaded.
    InputError
        If the backend or FAIRPERM_DATA is wrong, or a file in that folder is not what it should be.

    Notes
    -----
    The files are looked for in the folder that the environment variable FAIRPERM_DATA names, as
    ``adult.data`` and ``adult.test`` or, both in one with a header and a column ``split``,
    ``adult.csv``; then in the cache; then they are downloaded from UCI, checked (md5) and kept in
    the cache. The data are under the licence CC BY 4.0 (B. Becker and R. Kohavi, "Adult", UCI
    Machine Learning Repository, 1996, doi:10.24432/C5XW20).

    Examples
    --------
    >>> from fairperm.datasets import fetch_adult
    >>> adult = fetch_adult()  # doctest: +SKIP
    >>> round(float(adult["income"][adult["sex"] == "Female"].mean()), 3)  # doctest: +SKIP
    0.109
    """
    backend = checked_backend(backend)
    found = contents(_ADULT, "adult.csv")
    columns: list[Columns] = []
    for file, content in found.items():
        if file == "adult.csv":
            records = with_header(content, file, (*_ADULT_COLUMNS, "split"))
            split = coded(records, "split", file, {"train": "train", "test": "test"})
        else:
            records = without_header(content, file, _ADULT_COLUMNS, _by_commas)
            split = [{"adult.data": "train", "adult.test": "test"}[file]] * len(records)
        part = _columns(records, file, _ADULT_COLUMNS[:-1], _ADULT_NUMBERS, missing="?")
        part["income"] = np.array(coded(records, "income", file, _INCOMES), dtype=np.int64)
        columns.append(part | {"split": objects(split)})
    joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
    return framed(joined, backend)


@overload
def fetch_german(backend: None = None) -> dict[str, NDArray[Any]]: ...
@overload
def fetch_german(backend: Backend) -> Any: ...
def fetch_german(backend: Backend | None = None) -> Any:
    """Fetch the German credit data: which of 1,000 loans of a bank in the 1970s went bad.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow"}, optional
        The kind of data frame to return. Without it, only NumPy is needed.

    Returns
    -------
    dict of str to numpy.ndarray, or a data frame of the backend
        One row for each loan. The target is ``bad_risk``; sensitive are ``sex``, ``age`` and
        ``foreign_worker``. Codes are those of UCI's ``german.doc``.

        - ``duration`` (months), ``credit_amount`` (Deutsche Mark), ``installment_rate``,
          ``residence_since``, ``age``, ``existing_credits``, ``num_liable``: integers.
        - ``status`` (of the account), ``credit_history``, ``purpose``, ``savings``,
          ``employment``, ``personal_status_sex``, ``other_debtors``, ``property``,
          ``other_installment_plans``, ``housing``, ``job``, ``telephone``, ``foreign_worker``:
          codes such as "A11".
        - ``bad_risk``: 1 if the file's class is 2 (bad), 0 if it is 1 (good).
        - ``sex``: "female" or "male", out of ``personal_status_sex``; see the notes.

    Raises
    ------
    DataUnavailableError
        If the data are not on this machine and cannot be downloaded.
    InputError
        If the backend or FAIRPERM_DATA is wrong, or a file in that folder is not what it should be.

    Notes
    -----
    ``sex`` is what ``german.doc`` says of the codes, and is widely used. According to Grömping
    (2019), that code table is wrong: the code A92, "female", holds unmarried men as well, so that
    the sex cannot be told from these data. Bad loans (300) are over-represented on purpose.

    The file is looked for in the folder that the environment variable FAIRPERM_DATA names, as
    ``german.data`` or, with a header, ``german.csv``; then in the cache; then it is downloaded
    from UCI, checked (md5) and kept in the cache. The data are under the licence CC BY 4.0
    (H. Hofmann, "Statlog (German Credit Data)", UCI Machine Learning Repository, 1994,
    doi:10.24432/C5NC77).

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
    backend = checked_backend(backend)
    ((file, content),) = contents((_GERMAN,), "german.csv").items()
    if file == _GERMAN.name:
        records = without_header(content, file, _GERMAN_COLUMNS, str.split)
    else:
        records = with_header(content, file, _GERMAN_COLUMNS)
    columns = _columns(records, file, _GERMAN_COLUMNS[:-1], _GERMAN_NUMBERS)
    bad = coded(records, "class", file, {"1": 0, "2": 1})
    columns["bad_risk"] = np.array(bad, dtype=np.int64)
    columns["sex"] = objects(coded(records, "personal_status_sex", file, _GERMAN_SEXES))
    return framed(columns, backend)


def _columns(
    records: Sequence[Record],
    file: str,
    names: Sequence[str],
    integers: Sequence[str],
    missing: str = "",
) -> Columns:
    if not records:
        raise InputError(f"{file} must have rows; it has none.")
    return {
        name: numbers(records, name, file) if name in integers else texts(records, name, missing)
        for name in names
    }


def _by_commas(line: str) -> list[str]:
    return [value.strip() for value in line.split(",")]


def _passes_propublica_filter(record: Record, file: str) -> bool:
    """Tell whether ProPublica's published analysis keeps this row."""
    return (
        record["days_b_screening_arrest"] != ""  # R's filter drops missing values
        and -30 <= numbers([record], "days_b_screening_arrest", file)[0] <= 30
        and record["is_recid"] != "-1"
        and record["c_charge_degree"] != "O"
        and record["score_text"] != "N/A"
    )
