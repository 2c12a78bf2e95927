"""What is wrong with a command line, in a sentence."""

from difflib import get_close_matches
from typing import Final

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
)

_SIMILAR: Final = 0.75


def sentence_of(error: CycloptsError) -> str:
    """The sentence."""
    if isinstance(error, UnusedCliTokensError):
        return _too_many(error)
    if isinstance(error, UnknownCommandError):
        option = next((word for word in error.unused_tokens or () if word.startswith("-")), None)
        return str(error) if option is None else f"{option} is unknown here: the options of a command follow its name."
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error.argument.name, error.app)
    if isinstance(error, CoercionError) and error.msg is not None and error.token is not None:
        return f"{error.token.keyword} {error.token.value} is refused: {error.msg}."
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


def _too_many(error: UnusedCliTokensError) -> str:
    commands = [name for name in error.app or () if not name.startswith("-")]
    for word in error.root_input_tokens or ():
        if word not in commands and (similar := get_close_matches(word, commands, 1, _SIMILAR)):
            return f"{word!r} is unknown: did you mean {similar[0]}?"
    return f"There are too many arguments: {' '.join(error.unused_tokens or ())}."


def _missing(name: str, app: App | None) -> str:
    if name.startswith("-"):
        return f"{name} needs a value."
    usage = app.usage if app is not None else None
    return f"{name} is missing: {str(usage or '').removeprefix('Usage: ')}."
