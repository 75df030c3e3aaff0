"""``fairperm demo``: the COMPAS risk score, audited in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairperm.cli import options as arg
from fairperm.cli.terminal import fits, rendered, say, width, wrapped

_INTRODUCTION = (
    "COMPAS is a score from 1 to 10 that courts in the United States use to judge how likely a "
    'defendant is to be arrested again. We call 5 and above "high risk", as ProPublica did in '
    "2016, and ask of 6,172 defendants in Broward County, Florida: do the score's errors fall on "
    "all alike? Any two groups differ a little. The p-value is the probability that chance alone "
    "makes a gap this large or larger where the true rates are equal."
)
_QUESTIONS = {
    "false_positive_rate": "Of those not arrested again, how many had been called high risk?",
    "false_negative_rate": "Of those arrested again, how many had been called low risk?",
    "positive_predictive_value": "Of those called high risk, how many were arrested again?",
}
_CLOSING = (
    "Three fair questions, three answers. Where base rates differ, no score short of perfect can "
    "have equal error rates and equal predictive values at once; which of them matters is not "
    "statistics. Inconclusive is no evidence that rates are equal. (The file holds too many "
    "re-arrests among late screenings, so read its predictive values with care; see "
    "fairperm.datasets.load_compas.)"
)
_COMMAND = (
    "    fairperm audit predictions.csv --label outcome --score score --threshold 0.5 \\\n"
    "        --group race --group sex --metric fpr --metric fnr --report audit.html"
)
_IN_PYTHON = '    fairperm.audit(y_true, y_pred, sensitive_features=groups, metrics=["fpr", "fnr"])'


def demo(
    report: Annotated[Path, typer.Option(help="Where the report goes.", metavar="PATH")] = Path(
        "fairperm-demo.html"
    ),
    debug: arg.Debug = False,
) -> int:
    """Audit the COMPAS risk score by race and sex, and write a report."""
    import fairperm
    from fairperm.auditing.text import as_table, footing, heading
    from fairperm.cli.commands.report_sweeps import provenance, sweeps, write_report
    from fairperm.cli.documents import in_lines

    say(wrapped(_INTRODUCTION) + "\n")
    for metric, question in _QUESTIONS.items():
        say(wrapped(f"{question} ({metric})"))
    compas = fairperm.datasets.load_compas()
    audit = fairperm.audit(
        "two_year_recid",
        y_score="decile_score",
        threshold=5,
        sensitive_features=["race", "sex"],
        metrics=list(_QUESTIONS),
        data=compas,
        compare="reference",
        reference={"race": "Caucasian", "sex": "Male"},
        rng=2016,
    )
    table = as_table(audit, width())
    say("\n" + heading(audit))
    say(rendered(table) if fits(table) else in_lines(audit, width()))
    say(wrapped(footing(audit)) + "\n")
    say(wrapped(_CLOSING) + "\n")
    write_report(
        audit,
        report,
        title="COMPAS by race and sex",
        provenance=provenance("demo", {}, [], None),
        sweeps=sweeps(
            audit,
            compas,
            label="two_year_recid",
            score="decile_score",
            attributes=["race"],
            thresholds="scores",
        ),
    )
    say(f"The report is in {report}: open it in a browser.\n")
    say("The same for a file of your own:\n\n" + _COMMAND)
    say("\nor in Python:\n\n" + _IN_PYTHON)
    return 0
