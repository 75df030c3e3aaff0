"""``fairperm ranking``: test rankings, by kind of user or by kind of item."""

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


def ranking(
    ctx: typer.Context,
    files: arg.Files = None,
    relevance: arg.Relevance = None,
    score: arg.Score = None,
    rank: arg.Rank = None,
    query: arg.Query = None,
    group: arg.OneGroup = None,
    pair: arg.Pair = None,
    control: arg.Control = None,
    cluster: arg.Cluster = None,
    missing: arg.Missing = "error",
    metric: arg.RankingMetric = "ndcg",
    k: arg.TopK = 10,
    compare: arg.Compare = None,
    reference: arg.OneReference = None,
    adjust: arg.Adjust = "holm",
    alternative: arg.Alternative = "two-sided",
    resamples: arg.Resamples = "auto",
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
    csv: arg.Csv = None,
    raw_names: arg.RawNames = False,
    quiet: arg.Quiet = False,
    config: arg.Config = None,
    debug: arg.Debug = False,
) -> int:
    """Test whether rankings serve all kinds of users, or show all kinds of items, alike."""
    import fairperm
    from fairperm.cli.files.loading import read_rankings

    printed = outputs.check_outputs({"--json": json, "--csv": csv})
    if query is None:
        raise InputError("--query must be given: the column of queries, whose lists are ranked.")
    if group is None:
        raise InputError("--group must be given: the column of a protected attribute.")
    loaded = ctx.with_resource(read_rankings(ctx.params, with_hashes=json is not None))
    run_test: Callable[..., fairperm.RankingTestResult] = fairperm.ranking_test  # it checks all
    with show_warnings(quiet) as seen, loaded.clear_errors():
        found = run_test(
            relevance,
            score=score,
            rank=rank,
            query=query,
            sensitive_features=group,
            metric=metric,
            k=k,
            data=loaded.data,
            groups=None if pair is None else tuple(loaded.find_value(group, one) for one in pair),
            compare=compare or ("reference" if reference else "pairs"),
            reference=loaded.find_value(group, reference),
            adjust=arg.parse_word(adjust),
            control_features=control or None,
            cluster=cluster,
            missing=missing,
            alternative=alternative,
            n_resamples=resamples,
            confidence_level=confidence_level,
            rng=seed,
            n_jobs=jobs,
            progress=False if quiet else None,
        )
    used = found.comparisons[0].seed

    def make_json() -> str:
        return outputs.as_json(
            "ranking",
            found.to_dict(),
            options={**arg.collect_settings(ctx.params), "seed": used},
            files=loaded.files,
            rows=loaded.n_rows,
        )

    def make_csv() -> str:
        return outputs.as_csv(found.to_frame("pyarrow").to_pylist(), raw_names=raw_names)

    outputs.write_outputs((json, make_json), (csv, make_csv))
    if not quiet and not printed:
        first = found.comparisons[0]
        unseen = select_unseen(found.notes, seen)
        alone = (replace(first, notes=select_unseen(first.notes, seen)),)
        shown = alone if len(found) == 1 else found.comparisons
        print_text(repr(replace(found, comparisons=shown, notes=unseen)))
        if not all(one.exact for one in found):
            print_seed(used)
    return 0
