"""Common parts of the commands: the look of their help, the parser of numbers, and the choice of the app."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias

from cyclopts import App, Group, Parameter, Token

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.operate.presentation.formatting import plain
from lowkiq_lambda.operate.presentation.moments import moment_of, seconds_of
from lowkiq_lambda.settings.project import find_app

Convert: TypeAlias = Callable[[Any, Sequence[Token]], Any]
"""Makes the value of an option of its words."""

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


LONGEST_LENGTH: Final = 1e9
"""Seconds of a pause or a hold that ends."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

AppOption: TypeAlias = Annotated[
    str | None,
    Parameter(name=["--app", "-A"], help="The app, MODULE:APP; else that of LOWKIQ_APP, or of the project."),
]
"""Of each command. One that takes no other argument takes the app without the name of the option, too."""
Reason: TypeAlias = Annotated[
    str | None,
    Parameter(help="Why: it stands in the activity, beside your name. More than 100 jobs need it.", group=OPTIONS),
]
"""Of each command that changes what others work with."""
Yes: TypeAlias = Annotated[bool, flag("Do it without asking.")]
"""Of each command that changes what others work with: it says what it touches, and asks."""

After: TypeAlias = Annotated[str | None, Parameter(help="Go on where an earlier list ended, by its `next`.")]
"""Of each command that prints a page of a list."""


def app_spec(option: str | None, environ: Mapping[str, str]) -> str:
    """MODULE:APP, as `find_app_spec` finds it. Raises ConfigError where nothing names an app."""
    if spec := find_app_spec(option, environ):
        return spec
    raise ConfigError(
        "No app is named: give --app MODULE:APP, or set LOWKIQ_APP, or write it as app into "
        "[tool.lowkiq] of the project's pyproject.toml."
    )


def find_app_spec(spec: str | None, environ: Mapping[str, str]) -> str | None:
    """MODULE:APP as the command line, or else LOWKIQ_APP, or else the project's pyproject.toml has it; or None.

    A module that the pyproject.toml names is found from its folder. Raises ConfigError.
    """
    return spec or environ.get("LOWKIQ_APP", "").strip() or find_app()


def whole_number(least: int, most: int) -> Convert:
    """A converter that rounds nothing. It raises ValueError."""

    def convert(_: Any, tokens: Sequence[Token]) -> int:  # noqa: ANN401 - the type of the parameter, as cyclopts has it
        text = tokens[0].value
        try:
            number = finite_number(text)
        except ValueError:
            number = math.nan
        if not (number.is_integer() and least <= number <= most):
            raise ValueError(f"give a whole number from {least} to {most}")
        return int(text) if text.isdecimal() else int(number)

    return convert


def number(least: float, most: float, *, is_least_allowed: bool = True, is_most_allowed: bool = True) -> Convert:
    """A converter of what lies between the two. It raises ValueError."""
    if is_least_allowed and is_most_allowed:
        bounds = f"from {plain(least)} to {plain(most)}"
    else:
        lower, upper = "of at least" if is_least_allowed else "above", "at most" if is_most_allowed else "below"
        bounds = f"{lower} {plain(least)} and {upper} {plain(most)}"

    def convert(_: Any, tokens: Sequence[Token]) -> float:  # noqa: ANN401 - as above
        try:
            value = finite_number(tokens[0].value)
        except ValueError:
            value = math.nan
        if not (least < value < most or (value == least and is_least_allowed) or (value == most and is_most_allowed)):
            raise ValueError(f"give a number {bounds}")
        return value

    return convert


def seconds_above_0(_: Any, tokens: Sequence[Token]) -> float:  # noqa: ANN401 - as above
    """A converter of `5s` or `2m`; a number alone is seconds. It raises ValueError."""
    value = seconds_of(tokens[0].value)
    if value <= 0:
        raise ValueError("give a time above 0, such as 5s")
    return value


def moment_ahead(_: Any, tokens: Sequence[Token]) -> float:  # noqa: ANN401 - as above
    """A converter of a moment to come. It raises ValueError."""
    return moment_of(tokens[0].value, SystemClock.time(), ahead=True)


def finite_number(text: str) -> float:
    """The number that a text is. Raises ValueError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def length_of(text: str) -> float | None:
    """The seconds of a time with its unit, such as 90s, 30m, 2h or 1d; None if it is not one.

    Raises ConfigError for one that is too long.
    """
    number_text, unit = text[:-1].lstrip("0"), text[-1:]
    if unit not in _UNITS or not (number_text.isascii() and number_text.isdecimal()):
        return None
    seconds = float(number_text[:20]) * _UNITS[unit]
    if seconds > LONGEST_LENGTH:
        raise ConfigError(f"{text[:20]} is too long: give {LONGEST_LENGTH / _UNITS['d']:.0f}d at most.")
    return seconds
