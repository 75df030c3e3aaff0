"""``fairperm flip``: count decisions that change with an attribute, from files of decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairperm.cli.command import command
from fairperm.cli.running import Run
from fairperm.errors import InputError

if TYPE_CHECKING:
    import click

    import fairperm
    from fairperm.cli.files.loading import LoadedData


@command(
    "flip",
    "before after id prediction group@flip pos_label feature",
    "threshold@flip missing@flip resamples confidence_level seed READING json csv raw_names "
    "quiet config debug",
    example="fairperm flip --before original.jsonl --after flipped.jsonl --id item \\\n"
    "    --prediction response.hired --group sex",
)
def flip(ctx: click.Context) -> int:
    """Count decisions that change with an attribute, and test whether they favour one value.

    Ask the model about each item twice, with nothing but the attribute changed. With --feature,
    find the subgroups whose decisions change more often, or less.
    """
    from fairperm.cli.files.loading import read_flips
    from fairperm.subgroups.result import as_text

    run = Run(ctx)
    given = run.given
    run.need(before=": a file", after=": a file", prediction=": the column of decisions")
    if not given["id"]:
        raise InputError("--id must be given: the column that names an item.")
    loaded = run.use(read_flips(given, with_hashes=run.keeps_hashes))
    found: fairperm.FlipTestResult = run.call(lambda **options: _judge(loaded, options))
    subgroups = None
    if given["feature"]:
        subgroups = run.call(lambda **_: found.find_subgroups([*given["feature"]]))
    more = {} if subgroups is None else {"subgroups": subgroups.to_dict()}
    run.write(
        lambda: {**found.to_dict(), **more},
        run.settings(seed=found.seed),
        lambda: found.to_frame("pyarrow").to_pylist(),
    )
    text = repr(replace(found, notes=run.unseen(found.notes)))
    if subgroups is not None:
        text += f"\n\n{as_text(subgroups, '--json has all')}"
    run.say(text, found.seed)
    return 0


def _judge(loaded: LoadedData, options: dict[str, Any]) -> fairperm.FlipTestResult:
    """Return the result for the joined rows, without those that lack a decision."""
    import numpy as np

    from fairperm.counterfactual.decisions import Question, judge_pairs

    decision, group = options["y_pred"], options["group"]
    needed = [one for name in (decision, group) if name for one in (name, loaded.of_second[name])]
    rows, n = loaded.data, loaded.data.num_rows
    kept = np.arange(n)
    if options["missing"] == "drop":
        is_whole = np.all([rows[one].is_valid().to_numpy() for one in needed], axis=0)
        kept = np.flatnonzero(is_whole)
        rows = rows.filter(is_whole)
    asked = ("threshold", "pos_label", "confidence_level", "n_resamples", "rng")
    question = Question.of(*(options[name] for name in asked))
    return judge_pairs(
        rows[decision],
        rows[loaded.of_second[decision]],
        question,
        feature=group,
        rows=kept,
        n_dropped=n - len(kept),
        values=tuple(rows[one].to_pylist() for one in needed[2:]) or None,
        inputs=rows.select([*dict.fromkeys(options["features"])]) if options["features"] else None,
    )
