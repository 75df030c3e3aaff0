"""Public functions, the dataclasses behind them, commands and files of options agree."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import fairperm
from fairperm import errors
from fairperm.cli import main
from fairperm.cli.terminal import write_message
from fairperm.data.arguments import Inputs
from fairperm.hypothesis_tests.plan import Options
from fairperm.report.presentation import Presentation
from tests.support.commands import Here, as_text, sample

MODEL = dict(inspect.signature(fairperm.permutation_test).parameters)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "omnibus_test": fairperm.omnibus_test,
    "threshold_sweep": fairperm.threshold_sweep,
    "sweep_pairs": fairperm.sweep_pairs,
    "distance_test": fairperm.distance_test,
    "ranking_test": fairperm.ranking_test,
    "audit": fairperm.audit,
    "find_subgroups": fairperm.find_subgroups,
    "compare_models": fairperm.compare_models,
    "compare_periods": fairperm.compare_periods,
    "audit_periods": fairperm.audit_periods,
}
# Groups of the same sets.
WITH_SETS = {"omnibus_test", "audit", "compare_models"}
# Groups known only as probabilities, in tests and audits of one gap.
PROXIES = {"group_probabilities", "proxy_assumption", "proxy"}
# What a function cannot do, and what is its own.
LACKS = {
    "omnibus_test": {"alternative", "n_bootstrap"},
    "threshold_sweep": {
        *("y_pred", "threshold", "cluster", "split_clusters", "sample_weight", "score_bins"),
        *("n_bootstrap", "confidence_level"),
    },
    "sweep_pairs": {
        *("y_pred", "threshold", "cluster", "split_clusters", "sample_weight", "score_bins"),
        *("n_bootstrap", "confidence_level"),
    },
    "distance_test": {
        *("split_clusters",),
        *("y_pred", "y_score", "metric", "threshold", "pos_label", "stratum_weights", "score_bins"),
        *("scheme", "variance", "alternative", "n_bootstrap"),
    },
    "ranking_test": {
        *("y_true", "y_pred", "y_score", "threshold", "pos_label", "stratum_weights"),
        *("sample_weight", "score_bins", "scheme", "variance", "n_bootstrap"),
        *("split_clusters", "count"),
    },
    "audit": {"metric", "groups"},
    "find_subgroups": {
        *("sensitive_features", "groups", "stratum_weights", "scheme", "variance", "n_bootstrap"),
        *("confidence_level", "split_clusters"),
    },
    "compare_models": {"score_bins"},
    "compare_periods": set[str](),
    "audit_periods": {
        *("metric", "groups", "scheme", "variance", "alternative", "n_bootstrap"),
        "confidence_level",
    },
}
OWN = {
    "omnibus_test": set[str](),
    "threshold_sweep": {"thresholds", "alpha"},
    "sweep_pairs": {"thresholds", "alpha"},
    "distance_test": {"values", "distance", "compare", "reference", "adjust"},
    "ranking_test": {
        *("relevance", "score", "rank", "query", "k", "compare", "reference", "adjust"),
    },
    "audit": {
        *("y_pred_new", "y_score_new", "threshold_new"),
        *("metrics", "distances", "rankings", "query", "k"),
        *("compare", "reference", "intersections", "adjust", "family"),
        *("alpha", "margin", "ratio"),
        *("min_group_size", "group_size_by"),
    },
    "find_subgroups": {
        *("features", "max_depth", "min_rows", "bands", "adjust", "alpha", "confirm"),
    },
    "compare_models": {"y_pred_new", "y_score_new", "threshold_new"},
    "compare_periods": {"period", "periods", "against"},
    "audit_periods": {
        *("period", "periods", "against", "metrics", "reference", "alpha", "min_group_size"),
    },
}
# Several metrics at once, scores that a sweep cannot do without, labels that may be left out,
# metrics and clusters of queries; joint permutations do not stop early.
SWEEPS = ("threshold_sweep", "sweep_pairs")
OTHERWISE = {(sweep, name) for sweep in SWEEPS for name in ("y_true", "y_score", "metric")}
OTHERWISE |= {(name, "n_resamples") for name in SWEEPS}
OTHERWISE |= {("find_subgroups", "n_resamples"), ("distance_test", "y_true")}
OTHERWISE |= {("ranking_test", "metric"), ("ranking_test", "cluster")}
DECIDED_BY_A_MARGIN = {"alternative", "variance", "n_bootstrap"}

COMMANDS: dict[str, Callable[..., Any]] = {
    "audit": fairperm.audit,
    "compare": fairperm.audit,
    "test": fairperm.permutation_test,
    "sweep": fairperm.sweep_pairs,
    "discover": fairperm.find_subgroups,
    "ranking": fairperm.ranking_test,
    "periods": fairperm.audit_periods,
    "selection": fairperm.selection_audit,
}
# One model, or two.
NOT_OPTIONS = {
    "audit": {"y_pred_new", "y_score_new", "threshold_new"},
    "compare": {"score_bins", "distances", "rankings", "query", "k", *PROXIES},
}
# Files have no index.
ONLY_IN_PYTHON = {"ignore_index"}
# Defaults of the command line that mean the same, and arguments without a default.
OWN_DEFAULTS = {"compare", "intersections", "metric", "metrics", "thresholds", "progress"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_share_names_defaults_and_types(name: str) -> None:
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    without = set() if name in WITH_SETS else {"matched", "names"}
    without |= set() if name == "audit" else PROXIES
    assert set(parameters) == (set(MODEL) - LACKS[name] - without) | OWN[name]
    for argument, parameter in parameters.items():
        if argument in MODEL and (name, argument) not in OTHERWISE:
            model = MODEL[argument]
            assert (parameter.default, parameter.annotation) == (model.default, model.annotation)


@pytest.mark.parametrize("name", ["equivalence_test", "noninferiority"])
def test_margins_take_what_a_permutation_test_takes(name: str) -> None:
    function: Callable[..., Any] = getattr(fairperm, name)
    own = {"margin", "ratio", "higher_is_better"}
    assert inspect.signature(function).parameters.keys() - own == set(MODEL) - DECIDED_BY_A_MARGIN


@pytest.mark.parametrize("kind", [Inputs, Options])
def test_arguments_travel_under_their_own_names(kind: Any) -> None:
    made = {"seed", "sums_suffice", "must_keep", "resampling", "values"}
    for field in fields(kind):
        if field.name not in made:
            default = MODEL[field.name].default
            assert default == (
                inspect.Parameter.empty if field.default is MISSING else field.default
            )
    drawn = {"n_resamples", "rng", "n_jobs", "progress"}
    travelling = {field.name for both in (Inputs, Options) for field in fields(both)}
    assert set(MODEL) - travelling == {"metric", "groups", "count", *drawn}  # counts are data


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_every_argument_as_an_option(name: str) -> None:
    options = options_of(name)
    for argument, parameter in inspect.signature(COMMANDS[name]).parameters.items():
        if argument in ONLY_IN_PYTHON | NOT_OPTIONS.get(name, set()):
            continue
        option = options.get(argument)
        assert option is not None, f"fairperm {name} lacks {argument}"
        if argument in {"data", "progress"}:  # FILE, --quiet
            continue
        assert f"--{argument.replace('_', '-')}" in option.opts  # called as in Python
        # and so do messages of the library
        assert write_message(errors.InputError(errors.argument(argument))) in option.opts
        if argument not in OWN_DEFAULTS and parameter.default is not parameter.empty:
            assert option.default in (parameter.default, [] if not parameter.default else None)


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_hand_every_option_on_from_a_file_of_options_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    signature = inspect.signature(COMMANDS[name])
    expected = signature.parameters.keys() - ONLY_IN_PYTHON - NOT_OPTIONS.get(name, set())
    handed: dict[str, object] = {}

    def record(*values: object, **options: object) -> None:
        handed.update(signature.bind(*values, **options).arguments)
        raise fairperm.errors.FairpermError("enough")

    monkeypatch.setattr(fairperm, COMMANDS[name].__name__, record)
    (tmp_path / "x.csv").write_text(as_text(sample()))
    keys: dict[str, object] = {"label": "y", "score": "p", "group": "g", "feature": "g"}
    keys |= {"metric": "fpr", "query": "g", **({"score-new": "p"} if name == "compare" else {})}
    keys |= {"period": "g"} if name == "periods" else {}
    for argument in expected:
        option = options_of(name)[argument]
        if isinstance(option.default, (int, float, str)) and option.name not in keys:
            keys[option.name.replace("_", "-")] = option.default
    lines = [
        f"{key} = {str(one).lower() if isinstance(one, bool) else repr(one)}"
        for key, one in keys.items()
    ]
    (tmp_path / "fairperm.toml").write_text("\n".join(lines))
    code, _, said = Here(tmp_path, monkeypatch).run(
        name, tmp_path / "x.csv", "--config", tmp_path / "fairperm.toml"
    )
    assert (code, said.strip().splitlines()[-1:]) == (2, ["fairperm: error: enough"])
    assert set(handed) == expected


@pytest.mark.parametrize("command", ["audit", "compare", "report"])
def test_reports_take_the_same_words_in_python_and_on_the_command_line(command: str) -> None:
    words = {one.name: one.default for one in fields(Presentation)}
    method = inspect.signature(fairperm.Audit.to_html).parameters
    assert words == {name: method[name].default for name in words}
    assert set(method) - set(words) == {"self", "path", "sweep", "provenance"}
    options = options_of(command)
    assert all(not options[name].default for name in words)
    assert all(f"--{name.replace('_', '-')}" in options[name].opts for name in words)


def options_of(command: str) -> dict[str, Any]:
    """Return the options of a command by the arguments of the library that they set."""
    found = main.app.commands[command]
    params = {one.name: one for one in found.params}
    options = {one.argument or one.name: params[one.name] for one in found.options}
    return options | {"progress": params["quiet"]} if "quiet" in params else options
