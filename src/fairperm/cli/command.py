"""A command of the command line: its options, its help, and how it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairperm._utils.formatting import wrap_text
from fairperm.cli.options import ARGUMENTS, TOPICS, Option, find_options
from fairperm.cli.terminal import print_text, width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_WIDEST = 100  # columns of a help text
_WIDEST_NAME = 26
_ANY_TIMES = "An option with … may be given several times."


class Command(click.Command):
    """A command whose everyday options ``--help`` explains, and ``--help-all`` all of them."""

    def __init__(
        self,
        function: Callable[[click.Context], int],
        name: str,
        everyday: str,
        more: str,
        example: str,
    ) -> None:
        self.function, self.example = function, example
        self.everyday = find_options(everyday)
        self.options = [*self.everyday, *find_options(more)]
        params = [one.make_parameter() for one in self.options]
        write_all = self.explain_all if more else self.get_help
        params.append(make_help_option(["-h", "--help"], self.get_help))
        params.append(make_help_option(["--help-all"], write_all))
        super().__init__(name, params=params, help=function.__doc__, add_help_option=False)

    def invoke(self, ctx: click.Context) -> int:
        """Run the command, and return its exit code."""
        return self.function(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; raise for an option given twice of which one value would be used."""
        given = list(args)  # parsing empties the list
        rest = super().parse_args(ctx, args)
        *_, used = self.make_parser(ctx).parse_args(given)
        for one in used:
            takes_one = isinstance(one, click.Option) and not (one.multiple or one.is_flag)
            if takes_one and used.count(one) > 1:
                ctx.fail(f"{one.opts[0]} must be given only once")
        return rest

    def get_help(self, ctx: click.Context) -> str:
        """Return what the command does, an example, and what its everyday options mean."""
        return "\n".join(
            [*self._begin(ctx), "Options:", *_explain(self.everyday), *self._list_more()]
        )

    def explain_all(self, ctx: click.Context) -> str:
        """Return the help with all options, by topic."""
        lines = self._begin(ctx)
        for topic, options in TOPICS.items():
            if mine := [one for one in options if one in self.options]:
                lines += [f"{topic}:", *_explain(mine), ""]
        python = "An option may also be called as in Python: --n-resamples for --resamples."
        return "\n".join([*lines, *wrap_help(f"{_ANY_TIMES} {python}")])

    def _begin(self, ctx: click.Context) -> list[str]:
        files = (f"{one.value} " for one in self.options if one.name in ARGUMENTS)
        usage = f"Usage: {ctx.command_path} {''.join(files)}[OPTIONS]"
        first, *others = (" ".join(one.split()) for one in (self.help or "").split("\n\n"))
        lines = [*wrap_help(first), ""]
        for one in others:
            lines += [*wrap_help(one), ""]
        return [
            *lines,
            usage,
            "",
            "Example:",
            *(f"  {one}" for one in self.example.splitlines()),
            "",
        ]

    def _list_more(self) -> Iterator[str]:
        more = [one for one in self.options if one not in self.everyday]
        if not more:
            return
        yield from ("", "More options, which --help-all explains:")
        for topic, options in TOPICS.items():
            if names := [one.spelt for one in options if one in more]:
                yield from wrap_help("  ".join(names), f"  {topic:<13}")


def command(
    name: str, everyday: str, more: str = "", *, example: str
) -> Callable[[Callable[[click.Context], int]], Command]:
    """Make a command of a function; the options, by their keys, are those that it takes."""
    return lambda function: Command(function, name, everyday, more, example)


def make_help_option(names: Sequence[str], write: Callable[[click.Context], str]) -> click.Option:
    """Return the switch that shows a help."""

    def show(ctx: click.Context, param: object, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            print_text(write(ctx))
            ctx.exit()

    return click.Option(names, is_flag=True, is_eager=True, expose_value=False, callback=show)


def _explain(options: Sequence[Option]) -> list[str]:
    """Return a line or more for every option: its name, its value, what it means."""
    names = [
        ", ".join((*one.short, one.spelt)) if one.name not in ARGUMENTS else "" for one in options
    ]
    heads = [f"{name} {one.value}".strip() for name, one in zip(names, options, strict=True)]
    wide = 2 + max(len(one) for one in heads if len(one) <= _WIDEST_NAME)
    lines = []
    for head, option in zip(heads, options, strict=True):
        if len(head) > wide - 2:
            lines += [f"  {head}", *wrap_help(option.full_text, " " * (wide + 2))]
        else:
            lines += wrap_help(option.full_text, f"  {head:<{wide}}")
    return lines


def wrap_help(text: str, head: str = "") -> list[str]:
    """Return a paragraph in lines that fit the terminal, the first after a head."""
    columns = max(len(head) + 20, min(width(), _WIDEST) - 1)
    return wrap_text(text, columns, head, " " * len(head))
