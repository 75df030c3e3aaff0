"""``fairperm discover``: find the subgroups that are affected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.presenting import describe_run
from fairperm.cli.terminal import print_report, print_seed, print_text, select_unseen, show_warnings
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def discover(
    ctx: typer.Context,
    files: arg.Files = None,
    label: arg.Label = None,
    prediction: arg.Prediction = None,
    score: arg.Score = None,
    threshold: arg.Threshold = None,
    feature: arg.Feature = None,
    pos_label: arg.PosLabel = None,
    control: arg.Control = None,
    cluster: arg.Cluster = None,
    weight: arg.Weight = None,
    missing: arg.Missing = "error",
    score_bins: arg.ScoreBins = None,
    metric: arg.OneMetric = None,
    max_depth: arg.MaxDepth = 3,
    min_rows: arg.MinRows = 30,
    bands: arg.Bands = 4,
    alternative: arg.Alternative = "two-sided",
    adjust: arg.SearchAdjust = "maxt",
    alpha: arg.Alpha = 0.05,
    confirm: arg.Confirm = None,
    resamples: arg.SearchResamples = 999,
    seed: arg.Seed = None,
    jobs: arg.Jobs = None,
    table: arg.Table = None,
    sql: arg.Sql = None,
    where: arg.Where = None,
    format_: arg.FormatOption = None,
    delimiter: arg.Delimiter = None,
    decimal: arg.Decimal = ".",
    encoding: arg.Encoding = None,
    na: arg.Na = None,
    json: arg.Json = None,
    csv: arg.Csv = None,
    raw_names: arg.RawNames = False,
    report: arg.Report = None,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Find the subgroups in which a metric differs from that of all other rows."""
    import fairperm
    from fairperm.cli.files.loading import read_columns
    from fairperm.subgroups.result import as_text

    printed = outputs.check_outputs({"--report": report, "--json": json, "--csv": csv})
    if metric is None:
        raise InputError("--metric must be given; `fairperm metrics` lists them.")
    loaded = ctx.with_resource(read_columns(ctx.params, [metric], with_hashes=bool(json or report)))
    find: Callable[..., fairperm.Subgroups] = fairperm.find_subgroups  # it checks every word
    with show_warnings(quiet) as seen, loaded.clear_errors():
        found = find(
            label,
            prediction,
            y_score=loaded.column_if_read(score),
            threshold=threshold,
            features=feature,
            metric=metric,
            data=loaded.data,
            pos_label=loaded.find_value(label or prediction, pos_label),
            control_features=control or None,
            cluster=cluster,
            sample_weight=weight,
            missing=missing,
            score_bins=score_bins,
            max_depth=max_depth,
            min_rows=min_rows,
            bands=bands,
            alternative=alternative,
            adjust=adjust,
            alpha=alpha,
            confirm=confirm,
            n_resamples=resamples,
            rng=seed,
            n_jobs=jobs,
            progress=False if quiet else None,
        )

    options = {**arg.collect_settings(ctx.params), "seed": found.seed}
    if report is not None:
        run = describe_run("discover", options, loaded.files, loaded.n_rows)
        found.to_html(report, provenance=run)

    def make_json() -> str:
        return outputs.as_json(
            "discover",
            found.to_dict(),
            options=options,
            files=loaded.files,
            rows=loaded.n_rows,
        )

    def make_csv() -> str:
        rows = found.to_frame("pyarrow", which="found").to_pylist()
        return outputs.as_csv(rows, raw_names=raw_names)

    outputs.write_outputs((json, make_json), (csv, make_csv))
    if not quiet and not printed:
        unseen = replace(found, notes=select_unseen(found.notes, seen))
        print_text(as_text(unseen, "--csv and --report write all"))
        print_seed(found.seed)
        print_report(report)
    return 0
