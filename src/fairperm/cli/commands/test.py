"""``fairperm test``: test one metric in two groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.terminal import print_seed, print_text, select_unseen, show_warnings
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def one_test(
    ctx: typer.Context,
    files: arg.Files = None,
    label: arg.Label = None,
    prediction: arg.Prediction = None,
    score: arg.Score = None,
    class_score: arg.ClassScore = None,
    threshold: arg.Threshold = None,
    group: arg.OneGroup = None,
    pair: arg.Pair = None,
    pos_label: arg.PosLabel = None,
    control: arg.Control = None,
    stratum_weights: arg.StratumWeights = None,
    cluster: arg.Cluster = None,
    split_clusters: arg.SplitClusters = False,
    matched: arg.Matched = None,
    weight: arg.Weight = None,
    missing: arg.Missing = "error",
    score_bins: arg.ScoreBins = None,
    metric: arg.OneMetric = None,
    margin: arg.OneMargin = None,
    ratio: arg.OneRatio = None,
    better: arg.Better = None,
    scheme: arg.Scheme = "auto",
    variance: arg.Variance = "auto",
    alternative: arg.Alternative = "two-sided",
    resamples: arg.Resamples = "auto",
    bootstraps: arg.Bootstraps = 500,
    confidence_level: arg.ConfidenceLevel = 0.95,
    seed: arg.Seed = None,
    jobs: arg.Jobs = None,
    table: arg.Table = None,
    sql: arg.Sql = None,
    where: arg.Where = None,
    format_: arg.FormatOption = None,
    delimiter: arg.Delimiter = None,
    decimal: arg.Decimal = ".",
    encoding: arg.Encoding = None,
    skip: arg.Skip = 0,
    na: arg.Na = None,
    json: arg.Json = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test whether the gap between two groups in one metric is real or due to chance.

    With --margin or --ratio, test whether it is small enough.
    """
    import fairperm
    from fairperm.cli.files.loading import read_columns
    from fairperm.hypothesis_tests.margins.equivalence import compare_with_margin

    outputs.check_outputs({"--json": json})
    if metric is None:
        raise InputError("--metric must be given; `fairperm metrics` lists them.")
    has_margin = margin is not None or ratio is not None
    _check_margin_options(has_margin, better, alternative, variance)
    loaded = ctx.with_resource(read_columns(ctx.params, [metric], with_hashes=json is not None))
    run_test: Callable[..., fairperm.PermutationTestResult] = (
        fairperm.permutation_test
    )  # it checks every word
    with show_warnings(quiet) as seen, loaded.clear_errors(), arg.name_scores(class_score):
        found = run_test(
            label,
            prediction,
            y_score=loaded.find_scores(label, score, class_score),
            threshold=threshold,
            sensitive_features=group,
            metric=metric,
            data=loaded.data,
            groups=None if pair is None else tuple(loaded.find_value(group, one) for one in pair),
            pos_label=loaded.find_value(label or prediction, pos_label),
            control_features=control or None,
            stratum_weights=loaded.find_stratum_weights(control, stratum_weights),
            cluster=cluster,
            split_clusters=split_clusters,
            matched=matched,
            sample_weight=weight,
            missing=missing,
            score_bins=score_bins,
            scheme=scheme,
            variance=arg.parse_word(variance),
            alternative=alternative,
            n_resamples=resamples,
            n_bootstrap=bootstraps,
            confidence_level=confidence_level,
            rng=seed,
            n_jobs=jobs,
            progress=False if quiet else None,
        )
        shown: fairperm.PermutationTestResult | fairperm.EquivalenceTestResult = found
        if has_margin:
            shown = compare_with_margin(
                found, margin, ratio, None if better is None else better.value
            )
    if json is not None:
        text = outputs.as_json(
            "test",
            shown.to_dict(),
            options={**arg.collect_settings(ctx.params), "seed": found.seed},
            files=loaded.files,
            rows=loaded.n_rows,
        )
        outputs.write_output(json, text)
    if not quiet and json != "-":
        print_text(repr(replace(shown, notes=select_unseen(shown.notes, seen))))
        if not found.exact:
            print_seed(found.seed)
    return 0


def _check_margin_options(
    has_margin: bool, better: arg.BetterValues | None, alternative: str, variance: str
) -> None:
    """Raise InputError for options that a margin decides, or that need one."""
    if not has_margin and better is not None:
        raise InputError("--better needs --margin or --ratio.")
    for option, value, default in (
        ("--alternative", alternative, "two-sided"),
        ("--variance", variance, "auto"),
    ):
        if has_margin and value != default:
            raise InputError(f"{option} cannot be used with --margin or --ratio, which decide it.")
