"""Which column is what: a guess from names and values, with its reason in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairperm._utils.formatting import join_words

if TYPE_CHECKING:
    from fairperm.app.look import Column, Look

MAX_GROUPS = 50
_MAX_CHOSEN_GROUPS = 4  # attributes chosen at first
_MAX_CODED_GROUPS = 12
_MAX_STATUSES = 12  # values of a column, of which one means yes
_MAX_SUMMARY_ROWS = 1000  # of a table of counts
_YES_WORDS = (
    "1 y yes true t ja j wahr oui o vrai si hired selected accepted approved admitted granted "
    "invited passed pass promoted offered positive pos eingestellt ausgewählt eingeladen zugesagt "
    "zusage bewilligt angenommen befördert bestanden positiv retenu admis accepté high hoch"
)
_YES = frozenset(_YES_WORDS.split())
_SELECTED_WORDS = (
    "approved accepted admitted hired selected selection invited offer offered shortlisted granted "
    "promoted passed hire eingestellt ausgewählt eingeladen zusage zugesagt bewilligt befördert "
    "retenu embauché admis"
)
_SELECTED = frozenset(_SELECTED_WORDS.split())
_NAMES = {
    "label": "label labels truth true actual outcome target observed real y gt recid recidivism "
    "default defaulted repaid churn success happened ergebnis tatsächlich wahr rückfall ausfall "
    "zielgröße résultat réel",
    "prediction": "prediction predicted predict pred yhat hat decision decided entscheidung "
    f"vorhersage prognose décision {_SELECTED_WORDS}",
    "score": "score scores prob probability proba risk rating points decile percentile punkte "
    "punktzahl wahrscheinlichkeit bewertung risiko probabilité",
    "old": "old alt before current bisher bisherig ancien",
    "new": "new neu neue v2 challenger candidate after nouveau nouvelle",
    "group": "sex gender race ethnicity ethnic ethnie age ages religion nationality nation "
    "disability disabled origin minority citizenship marital veteran group geschlecht alter "
    "altersgruppe herkunft nationalität behinderung gruppe staatsangehörigkeit sexe genre âge "
    "origine groupe",
    "count": "count counts n freq frequency anzahl häufigkeit nombre effectif",
    "applicants": "applicants applications applied bewerber bewerbungen candidats candidatures",
}
_WORDS = {role: frozenset(names.split()) for role, names in _NAMES.items()}
_WORDS |= {f"{role}_new": _WORDS[role] | _WORDS["new"] for role in ("prediction", "score")}
_WORDS |= {"selected": _WORDS["prediction"]}


@dataclass(frozen=True, slots=True)
class Guess:
    """A column, or several, that a role seems to be, and why."""

    columns: tuple[str, ...] = ()
    why: str = ""

    @property
    def column(self) -> str:
        """The column; empty without one."""
        return self.columns[0] if self.columns else ""


def guess_roles(found: Look) -> dict[str, Guess]:
    """Return what each role seems to be; a column has one role."""
    taken: set[str] = set()
    guesses: dict[str, Guess] = {}

    def choose(
        role: str, fits: Callable[[Column], bool], what: str, *, by_value: bool = False
    ) -> None:
        if role in guesses:
            return
        fitting = [one for one in found.columns if one.name not in taken and fits(one)]
        named = [one for one in fitting if is_named(one.name, role)]
        if role in {"prediction", "selected"}:
            named = named or [one for one in fitting if _said_values(one)]
        if chosen := (named or (fitting if by_value else []))[:1]:
            word = next(iter(split_name(chosen[0].name) & _WORDS[role]), "")
            why = f"its name says “{word}” and " if word else ""
            if named and not word:
                why = f"it says “{_said_values(chosen[0])[0]}” and "
            taken.add(chosen[0].name)
            guesses[role] = Guess((chosen[0].name,), f"{why}{what.format(chosen[0])}")

    two, many, whole = (
        "it has two values",
        "it has numbers from {0.low:g} to {0.high:g}",
        "it counts",
    )
    choose("prediction_new", lambda one: _is_binary(one) and _has(one, "new"), two, by_value=True)
    choose("score_new", lambda one: _is_score(one) and _has(one, "new"), many, by_value=True)
    if "prediction_new" in guesses:
        choose("prediction", lambda one: _is_binary(one) and _has(one, "old"), two, by_value=True)
    choose("prediction", _is_binary, two)
    choose("label", _is_binary, two)
    choose("score", _is_score, many)
    if "prediction" not in guesses:
        choose("selected", _is_status, "it has {0.n_distinct} values")
    if found.n_rows <= _MAX_SUMMARY_ROWS:
        choose("applicants", _is_count, whole)
        choose("count", _is_count, whole)
    free = [one for one in found.columns if one.name not in taken and _is_group(one)]
    groups = [one for one in free if is_named(one.name, "group")]
    groups = (groups or [one for one in free if one.kind == "text"])[:_MAX_CHOSEN_GROUPS]
    taken |= {one.name for one in groups}
    choose("score", _is_share, many, by_value=True)
    by_value = not any(_is_status(one) and _is_of_selection(one) for one in found.columns)
    choose("label", _is_binary, two, by_value=by_value)
    fits = _is_count if "applicants" in guesses else _is_binary
    taken -= {one.column for role, one in guesses.items() if not role.endswith("_new")}
    taken -= {one.name for one in groups} if fits is _is_count else set()
    choose(
        "selected",
        lambda one: fits(one) and not _has(one, "old"),
        whole if fits is _is_count else two,
    )
    if "selected" not in guesses and "label" in guesses:
        guesses["selected"] = guesses["label"]
    if groups:
        parts = [f"{one.name} has {one.n_distinct} values" for one in groups]
        names = tuple(one.name for one in groups)
        guesses["group"] = Guess(names, f"they tell kinds of people: {join_words(parts)}")
    return guesses


def guess_question(guesses: Collection[str]) -> str:
    """Return the question that fits the columns."""
    has_output = bool({"prediction", "score"} & {*guesses})
    if "label" in guesses and has_output:
        return "compare" if {"prediction_new", "score_new"} & {*guesses} else "audit"
    return "selection"


def guess_positive(column: Column | None) -> str | None:
    """Return the value that means yes; empty if the values do not say it, None if none must be."""
    if column is None or not 2 <= len(column.values) <= _MAX_STATUSES:
        return None
    if len(column.values) > 2 and column.kind != "text":
        return None
    if sorted(column.texts) in (["0", "1"], ["false", "true"]):
        return None
    yes = [one for one in column.texts if one.strip().casefold() in _YES]
    return yes[0] if len(yes) == 1 else ""


def guess_threshold(column: Column | None, share: float | None) -> float:
    """Return the number from which scores may mean yes.

    Of few scores, it is the one that flags about this share of the people; of many, the middle.
    """
    if column is None or column.low is None or column.high is None:
        return 0.5
    if column.values and share is not None:
        counts = sorted((float(text), n) for text, n in column.values)
        flagged = [(sum(n for _, n in counts[i:]), one) for i, (one, _) in enumerate(counts)]
        total = flagged[0][0]
        return min(flagged, key=lambda one: abs(one[0] / total - share))[1]
    if column.low >= 0 and column.high <= 1:
        return 0.5
    middle = (column.low + column.high) / 2
    return float(f"{middle:.3g}")


def list_codes(column: Column | None) -> list[str]:
    """Return the values of a group that are codes: numbers, or single letters."""
    if column is None or not column.values or len(column.values) > _MAX_CODED_GROUPS:
        return []
    return column.texts if all(len(one) <= 2 for one in column.texts) else []


def split_name(name: str) -> set[str]:
    """Return the words of a column's name.

    >>> sorted(split_name("isHired_2024 (Alter)"))
    ['2024', 'alter', 'hired', 'is']
    """
    spaced = re.sub(r"(?<=[a-zäöü])(?=[A-ZÄÖÜ])", " ", name)
    return {one.casefold() for one in re.split(r"[\W_]+", spaced) if one}


def is_named(name: str, role: str) -> bool:
    """Whether a column's name has a word for a role."""
    return bool(split_name(name) & _WORDS[role])


def _has(column: Column, role: str) -> bool:
    return is_named(column.name, role)


def _is_binary(column: Column) -> bool:
    return column.n_distinct == 2


def _is_status(column: Column) -> bool:
    """Whether the values are two, or some of which one says who was selected."""
    return _is_binary(column) or (
        column.kind == "text"
        and 2 < column.n_distinct <= _MAX_STATUSES
        and bool(_said_values(column))
    )


def _said_values(column: Column) -> list[str]:
    """Return the values that say that somebody was selected."""
    return [one for one in column.texts if one.strip().casefold() in _SELECTED]


def _is_of_selection(column: Column) -> bool:
    """Whether a column says who was selected, rather than what a model predicts."""
    return bool(split_name(column.name) & _SELECTED or _said_values(column))


def _is_score(column: Column) -> bool:
    return column.kind == "number" and column.n_distinct > 2


def _is_share(column: Column) -> bool:
    """Whether the values are shares or probabilities, and not whole numbers."""
    is_within = column.low is not None and column.low >= 0 and (column.high or 0) <= 1
    return _is_score(column) and is_within


def _is_count(column: Column) -> bool:
    is_whole = all(text.lstrip("-").isdigit() for text in column.texts)
    is_id = bool(split_name(column.name) & {"id", "nr", "no", "nummer", "number"})
    return column.kind == "number" and is_whole and (column.low or 0) >= 0 and not is_id


def _is_group(column: Column) -> bool:
    most = _MAX_CODED_GROUPS if column.kind == "number" else MAX_GROUPS
    return 2 <= column.n_distinct <= most
