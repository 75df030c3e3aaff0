"""The four questions: what the page asks, and the options of the command line that this makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairperm.app.guesses import (
    guess_positive,
    guess_question,
    guess_roles,
    guess_threshold,
    list_codes,
)
from fairperm.cli.values import join_columns
from fairperm.errors import InputError

if TYPE_CHECKING:
    from fairperm.app.look import Column, Look

OUTPUTS = {"report": "report.html", "xlsx": "table.xlsx", "csv": "table.csv", "json": "result.json"}
_MAX_PAIRED = 6  # groups of an attribute, from which on each is compared with the rest


@dataclass(frozen=True, slots=True)
class Question:
    """A question: the command that answers it, its words, and the roles of columns it asks for."""

    command: str
    title: str
    text: str
    roles: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """How to run again the command that wrote its outputs into the folder of its process."""

    command: str
    python: str
    seed: int | None


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric in the words of the page."""

    name: str
    title: str
    text: str
    needs: str = "label"


_REPORT = ("title", "author")
_MODEL = ("label", "prediction", "score")
QUESTIONS = (
    Question(
        "selection",
        "Are groups selected alike?",
        "Who was hired, admitted or given a loan? Needs no model and no outcome.",
        ("selected", "score", "control", "count", "applicants"),
        ("threshold", "four_fifths", "minimum_share", "intersections", *_REPORT),
    ),
    Question(
        "audit",
        "Does the model err alike?",
        "How often is a model, or a score, wrong about the people of each group?",
        (*_MODEL, "control"),
        ("threshold", "margin", "compare", "min_group_size", "positive_means", *_REPORT),
    ),
    Question(
        "compare",
        "Did the new model help?",
        "Two models, the same people: which gaps between groups became smaller?",
        (*_MODEL, "prediction_new", "score_new"),
        ("threshold", "threshold_new", "compare", "min_group_size", "positive_means", *_REPORT),
    ),
    Question(
        "discover",
        "Who is affected?",
        "Searches combinations of columns for people about whom the model errs differently.",
        _MODEL,
        ("threshold", "max_depth", "min_rows"),
    ),
)
METRICS = (
    Metric(
        "false_positive_rate", "Wrong yes", "of those with a negative outcome, the share flagged"
    ),
    Metric("false_negative_rate", "Wrong no", "of those with a positive outcome, the share missed"),
    Metric("positive_predictive_value", "A yes is right", "of those flagged, the share positive"),
    Metric("accuracy", "Right at all", "the share about whom the model is right"),
    Metric("selection_rate", "Says yes", "the share flagged, right or wrong", ""),
    Metric(
        "roc_auc", "Ranks well", "how often a positive person scores above a negative one", "score"
    ),
    Metric(
        "mean_absolute_error", "Off by", "the mean distance of prediction and outcome", "number"
    ),
)
_ERRORS = ("false_positive_rate", "false_negative_rate")
# what a message of the command line calls its options, and the page its fields
FIELDS = {
    "selected": "“Who was selected?”",
    "label": "“What really happened?”",
    "prediction": "“The model's decision”",
    "prediction-new": "“The new model's decision”",
    "score": "“The model's score”",
    "score-new": "“The new model's score”",
    "group": "“Groups to compare”",
    "feature": "“Groups to compare”",
    "pos-label": "“Which value means yes?”",
    "threshold": "“Yes from a score of”",
    "threshold-new": "“Yes from a new score of”",
    "margin": "“A gap that does not matter”",
    "four-fifths": "“The rule's bound”",
    "minimum-share": "“Smallest share of a group”",
    "min-group-size": "“Fewest rows of a group”",
    "metric": "“What counts”",
    "control": "“Compare only within”",
    "missing": "“Missing values”",
    "decimal": "“Decimal mark”",
    "encoding": "“Encoding”",
    "skip": "“Title lines above”",
    "table": "“Sheet or table”",
    "na": "“Missing values”",
    "min-rows": "“Fewest rows of a group”",
}


_ROLES = {
    "label": "outcome",
    "prediction": "decision",
    "prediction_new": "new decision",
    "score": "score",
    "score_new": "new score",
    "selected": "selected",
    "group": "groups",
    "count": "count",
    "applicants": "applicants",
}


WORDS = {
    "false positive rate": "Of those with a negative outcome, the share flagged.",
    "false negative rate": "Of those with a positive outcome, the share missed.",
    "positive predictive value": "Of those flagged, the share that is positive.",
    "selection rate": "The share of a group that is selected, or about whom the model says yes.",
    "gap": "The value of the first group minus the value of the second.",
    "values": "The metric in each of the two groups.",
    "ratio": "The value of one group divided by the value of the other.",
    "impact ratio": "A group's selection rate divided by that of the group selected most.",
    "shortfall": "How many more of the group would be selected at the highest rate.",
    "sd": "How many standard errors a rate is from the highest. Rules ask about 2 or 3.",
    "95 % interval": "The range of true values that are compatible with the data.",
    "p": "How often chance alone makes a gap this large. Small: it is hardly chance.",
    "adjusted p": "The p-value, made larger because many gaps were tested at once.",
    "detectable gap": "The smallest gap that so many people would probably show.",
    "disparity": "A gap that chance does not explain.",
    "equivalent": "The gap is shown to be smaller than the margin.",
    "inconclusive": "Undecided: chance, or a real gap. It is no proof of equal treatment.",
    "too small": "Too few people to say anything. It is no proof of equal treatment.",
    "below": "The ratio is shown to be below the bound, whatever chance did.",
    "at least": "The ratio is shown to be at least the bound.",
    "undecided": "Chance allows ratios below the bound and above it.",
    "widened": "The gap is larger with the new model, and chance does not explain it.",
    "narrowed": "The gap is smaller with the new model, and chance does not explain it.",
    "rest": "The value among all other people.",
}


class Form:
    """What was filled in, by the names of fields; columns and values by their places."""

    def __init__(self, given: Mapping[str, list[str]], look: Look) -> None:
        self.given, self.look = {**given}, look
        self.guesses = guess_roles(look)
        commands = [one.command for one in QUESTIONS]
        if self.text("question") not in commands:
            self.given["question"] = [guess_question(self.guesses)]
        self.question = QUESTIONS[commands.index(self.text("question"))]
        if self.text("asked") != self.question.command:  # the fields are of another question
            self.given.pop("metric", None)
            self._fill()

    def _fill(self) -> None:
        """Fill in what names and values of the columns seem to say."""
        for role, guess in self.guesses.items():
            if not self.text(role):
                self.given[role] = [*map(str, self._places(guess.columns))]

    def _places(self, names: Iterable[str]) -> Iterator[int]:
        known = [one.name for one in self.look.columns]
        return (known.index(one) for one in names)

    def text(self, name: str) -> str:
        """Return the text of a field; empty without one."""
        return (self.given.get(name) or [""])[0].strip()

    def column(self, role: str) -> Column | None:
        """Return the column that was chosen for a role."""
        return next(iter(self.columns(role)), None)

    def columns(self, role: str) -> list[Column]:
        """Return the columns that were chosen for a role."""
        places = (one for one in self.given.get(role) or () if one.isdecimal())
        known = self.look.columns
        return [known[int(one)] for one in places if int(one) < len(known)]

    def why(self, role: str) -> str:
        """Return why the chosen column was guessed; empty if somebody chose another."""
        column = self.column(role)
        guess = self.guesses.get(role)
        return guess.why if guess and column and guess.column == column.name else ""

    @property
    def decided(self) -> Column | None:
        """The column whose two values mean yes and no."""
        return self.column("selected" if self.question.command == "selection" else "label")

    @property
    def positive(self) -> str | None:
        """The value that means yes, if the form must ask; empty if nothing was chosen."""
        column = self.decided
        guess = guess_positive(column)
        if guess is None or column is None or self.read.get("applicants"):
            return None
        place = self.text(f"positive-{self.look.columns.index(column)}")
        return column.texts[int(place)] if place.isdecimal() else guess

    @property
    def deciding(self) -> list[Column]:
        """The columns of decisions, outcomes and scores, which tell no groups."""
        roles = {*self.question.roles} - {"control"}
        return [one for role in roles for one in self.columns(role)]

    @property
    def is_summary(self) -> bool:
        """Whether the file may be a summary with a row for each group."""
        return "applicants" in self.guesses

    def role_of(self, column: Column) -> str:
        """Return what a column seems to be, in words; empty without a guess."""
        found = (role for role, one in self.guesses.items() if column.name in one.columns)
        return _ROLES.get(next(found, ""), "")

    @property
    def is_scored(self) -> bool:
        """Whether a score decides, and needs a threshold."""
        by = "selected" if self.question.command == "selection" else "prediction"
        return self.column(by) is None and self.column("score") is not None

    @property
    def threshold_field(self) -> str:
        """The name of the field of the threshold: each score and question has its own."""
        return f"threshold-{self.question.command}-{self.text('score')}"

    @property
    def threshold(self) -> str:
        """The threshold; a guess if none was filled in."""
        label, share = self.column("label"), None
        if label is not None and len(label.values) == 2:
            yes = self.positive or max(label.texts)
            share = dict(label.values)[yes] / sum(n for _, n in label.values)
        guess = f"{guess_threshold(self.column('score'), share):g}"
        fallback = "median" if self.question.command == "selection" else guess
        return self.text(self.threshold_field) or fallback

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that fit the columns."""
        label = self.column("label")
        kinds = {"", "label"} | ({"score"} if self.column("score") else set())
        if label is not None and label.kind == "number" and label.n_distinct > _MAX_PAIRED * 2:
            kinds = {"number"}
        if self.question.command == "compare":
            kinds -= {"score"} if self.column("score_new") is None else set()
        return [one for one in METRICS if one.needs in kinds]

    @property
    def chosen_metrics(self) -> list[str]:
        """The metrics that were chosen; at first, those of wrong decisions."""
        known = [one.name for one in self.metrics]
        given = [one for one in self.given.get("metric") or () if one in known]
        if given or not known:
            return given
        return [one for one in _ERRORS if one in known] or known[:1]

    @property
    def pairing(self) -> str:
        """How groups are compared: with many of them, each with the rest."""
        most = max((one.n_distinct for one in self.columns("group")), default=0)
        return self.text("compare") or ("pairs" if most <= _MAX_PAIRED else "rest")

    @property
    def combines(self) -> str:
        """Whether combinations of columns are compared, too: at first those of two columns."""
        given = self.text("intersections")
        return given or ("no" if len(self.columns("group")) > 2 else "yes")

    @property
    def read(self) -> dict[str, Column]:
        """The columns that the command reads, by their roles: a decision is read, not its score."""
        found = {role: one for role in self.question.roles if (one := self.column(role))}
        pair = {"prediction", "prediction_new"} if self.question.command == "compare" else set()
        decision = pair or {"selected" if self.question.command == "selection" else "prediction"}
        ranks = any(one.needs == "score" for one in METRICS if one.name in self.chosen_metrics)
        if decision <= {*found} and not (ranks and self.question.command != "selection"):
            found = {role: one for role, one in found.items() if not role.startswith("score")}
        return found

    @property
    def n_missing(self) -> int:
        """The number of missing values in the columns that are used."""
        used = [*self.read.values(), *self.columns("group")]
        return sum({one.name: one.n_missing for one in used}.values())

    @property
    def codes(self) -> dict[str, list[tuple[str, str, str]]]:
        """The groups that are called by codes: for each its field, its code and its name."""
        if self.question.command not in {"audit", "compare"}:
            return {}
        fields = {
            one.name: [
                (f"code-{self.look.columns.index(one)}-{i}", code)
                for i, code in enumerate(list_codes(one))
            ]
            for one in self.columns("group")
        }
        return {
            name: [(field, code, self.text(field)) for field, code in codes]
            for name, codes in fields.items()
            if codes
        }

    def options(self) -> list[str]:
        """Return the options of the command. Raises InputError for what must still be chosen."""
        found = [*self._list_columns(), *self._list_texts()]
        reading = self.look.reading.options()
        return [
            f"--{name.replace('_', '-')}={one}"
            for name, value in (*found, *reading.items())
            for one in (value if isinstance(value, list) else [value])
        ]

    def _list_columns(self) -> Iterator[tuple[str, Any]]:
        command = self.question.command
        groups = [one.name for one in self.columns("group")]
        if not groups:
            raise InputError("Choose at least one column of groups to compare.")
        for role, column in self.read.items():
            yield role, [column.name] if role == "control" else column.name
        by = "feature" if command == "discover" else "group"
        is_split = command in {"audit", "compare"}
        yield by, [join_columns([one]) if is_split else one for one in groups]
        if self.positive == "" and self.decided is not None:
            raise InputError(f"Choose which value of “{self.decided.name}” means yes.")
        if self.positive:
            yield "pos_label", self.positive

    def _list_texts(self) -> Iterator[tuple[str, Any]]:
        command = self.question.command
        if command != "selection":
            yield (
                "metric",
                self.chosen_metrics[:1] if command == "discover" else self.chosen_metrics,
            )
            if self.n_missing:
                yield "missing", self.text("missing") or "drop"
        given = {name: self.text(name) for name in self.question.texts}
        given["threshold"] = self.threshold if self.is_scored else ""
        if "intersections" in given:
            given["intersections"] = "no" if self.combines == "no" else ""
        if "compare" in given:
            given["compare"] = "rest" if self.pairing == "rest" else ""
        if self.text("seed").isdecimal() and command != "selection":
            given["seed"] = self.text("seed")
        yield from ((name, value) for name, value in given.items() if value)
        for column, codes in self.codes.items():
            for _, code, name in codes:
                if name:
                    yield "rename", f"{column}:{code}={name}"
