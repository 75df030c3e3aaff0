"""``fairperm demo``: audit the COMPAS risk score, explained in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairperm._utils.formatting import escape_controls
from fairperm.cli.command import command
from fairperm.cli.terminal import print_audit, print_report, print_text, wrap

if TYPE_CHECKING:
    import click

_INTRODUCTION = (
    "COMPAS is a score from 1 to 10 that courts in the United States use to judge how likely a "
    "defendant is to be arrested again. As ProPublica did in 2016, we call scores of 5 and above "
    '"high risk", and compare the errors of the score between groups of 6,172 defendants in '
    "Broward County, Florida. Any two groups differ a little by chance. The p-value is the "
    "probability of a gap at least this large if the true rates are equal."
)
_QUESTIONS = {
    "false_positive_rate": "How many of those not arrested again were called high risk?",
    "false_negative_rate": "How many of those arrested again were called low risk?",
    "positive_predictive_value": "How many of those called high risk were arrested again?",
}
_CLOSING = (
    "The three questions have different answers. If base rates differ, no imperfect score can have "
    "both equal error rates and equal predictive values; which of them matters is not a question "
    "of statistics. An inconclusive result is no evidence that rates are equal. (The data contain "
    "too many re-arrests among late screenings, so read the predictive values with care; see "
    "fairperm.datasets.load_compas.)"
)
_COMMAND = (
    "    fairperm audit predictions.csv --label outcome --score score --threshold 0.5 \\\n"
    "        --group race --group sex --metric fpr --metric fnr --report audit.html"
)
_IN_PYTHON = '    fairperm.audit(y_true, y_pred, sensitive_features=groups, metrics=["fpr", "fnr"])'


@command("demo", "report@demo debug", example="fairperm demo")
def demo(ctx: click.Context) -> int:
    """Audit the COMPAS risk score by race and sex, and write a report."""
    import fairperm
    from fairperm.cli.commands.audit import make_sweeps
    from fairperm.cli.presenting import describe_run
    from fairperm.report.page import as_html
    from fairperm.report.presentation import Presentation

    report = ctx.params["report"]
    print_text(wrap(_INTRODUCTION) + "\n")
    for metric, question in _QUESTIONS.items():
        print_text(wrap(f"{question} ({metric})"))
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
    print_text("")
    print_audit(audit)
    print_text("\n" + wrap(_CLOSING) + "\n")
    sweeps = make_sweeps(
        audit,
        compas,
        label="two_year_recid",
        score="decile_score",
        attributes=["race"],
        thresholds="scores",
    )
    whole = Path(report).with_stem(f"{Path(report).stem}-full")
    for path in (report, whole):
        as_html(
            audit,
            path,
            sweep=sweeps.found if path == whole else (),
            not_swept=sweeps.reasons if path == whole else {},
            presentation=Presentation(
                title="COMPAS by race and sex",
                positive_means="were arrested again within two years",
                negative_means="were not arrested again within two years",
                short=path == report,
            ),
            provenance=describe_run("demo", {}, [], None),
        )
    print_report(report)
    print_text(f"All comparisons, thresholds and methods: {escape_controls(str(whole))}")
    print_text("\nTo audit a file of your own:\n\n" + _COMMAND)
    print_text("\nor in Python:\n\n" + _IN_PYTHON)
    return 0
