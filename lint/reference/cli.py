"""The page of the command line, made of its commands as their `--help` is."""

import re
from collections.abc import Iterator
from typing import Final

from cyclopts import App, Argument

from lint.reference.tables import code, table
from lowkiq_lambda.cli.catalog import COMMANDS, every_command, lowkiq

_INTRODUCTION: Final = """\
# Commands

`lowkiq COMMAND --help` prints the same. [cli](../cli.md) says how an app is named and what the exit codes mean.
"""


def page() -> str:
    """The text of the page."""
    titles = {name: title for title, commands in COMMANDS.items() for name in commands}
    app = lowkiq(*every_command())
    rows = [
        [f"[`lowkiq {words}`](#lowkiq-{words.replace(' ', '-')})", titles[words.partition(" ")[0]], listed.summary]
        for words, listed in every_command().items()
    ]
    parts = [_INTRODUCTION, table(("command", "for", "does"), rows), ""]
    for name in titles:
        parts += _sections(app[name], f"lowkiq {name}", "##")
    return "\n".join(parts)


def _sections(app: App, title: str, heading: str) -> Iterator[str]:
    """The section of a command, and those of its own commands."""
    yield f"{heading} {title}\n"
    yield f"```text\n{str(app.usage).removeprefix('Usage: ')}\n```\n"
    yield _paragraphs(str(app.help))
    rows = [*_options(app)]
    if rows:
        yield table(("option", "is", "default"), rows)
        yield ""
    if app.help_epilogue:
        yield f"```text\n{app.help_epilogue.strip()}\n```\n"
    for name in app:
        if not name.startswith("-"):
            yield from _sections(app[name], f"{title} {name}", "###")


def _options(app: App) -> Iterator[list[str]]:
    if app.default_command is None:
        return
    for argument in app.assemble_argument_collection():
        # A group of options is an argument too, of which only its members have a name.
        if argument.name != "*":
            choices = argument.get_choices()
            help_ = f"{argument.parameter.help} One of {', '.join(choices)}." if choices else argument.parameter.help
            yield [", ".join(map(code, argument.names)), str(help_), code(_default(argument))]


def _default(argument: Argument) -> str:
    default = argument.field_info.default
    is_shown = default not in {None, (), argument.field_info.empty} and not argument.is_flag()
    return str(default) if is_shown else ""


def _paragraphs(text: str) -> str:
    """Each paragraph of a help text on a line of its own."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())) + "\n"
