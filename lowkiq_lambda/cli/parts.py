"""What the commands have in common: how their help looks, how a number is read, and which app is meant."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from cyclopts import App, Group, Parameter, Token

from lowkiq_lambda.config import Config
from lowkiq_lambda.errors import ConfigError

OPTIONS: Final = Group("Options")


def command_app(name: str, *, help_: str, epilogue: str, usage: str, group: Group | None = None) -> App:
    """A command whose help is `help_`, the options, and `epilogue` as it stands."""
    return App(
        name=name,
        help=help_,
        help_epilogue=epilogue,
        help_format="plaintext",
        version_flags=[],
        group=group,
        group_arguments=OPTIONS,
        group_commands=OPTIONS,
        group_parameters=OPTIONS,
        usage=f"Usage: {usage}",
    )


def flag(text: str, group: Group = OPTIONS) -> Parameter:
    """An option without a value, off by default."""
    return Parameter(help=text, group=group, negative="", show_default=False)


def app_spec(named: str | None, environ: Mapping[str, str]) -> str:
    """MODULE:APP as the command line or else LOWKIQ_APP has it. Raises ConfigError."""
    spec = named or Config.from_env(environ).app
    if not spec:
        raise ConfigError("No app is named: give MODULE:APP, or set LOWKIQ_APP.")
    return spec


def whole_number(_: Any, tokens: Sequence[Token]) -> int:  # noqa: ANN401 - the type of the parameter, as cyclopts has it
    """A converter that rounds nothing. Raises ValueError."""
    text = tokens[0].value
    number = finite_number(text)
    if not number.is_integer():
        raise ValueError(f"{text!r} is not a whole number")
    return int(text) if text.isdecimal() else int(number)


def finite_number(text: str) -> float:
    """The number that a text is. Raises ValueError."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise ValueError(f"{text!r} is not a number")
    return number
