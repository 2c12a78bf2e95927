"""Errors in words: the text that is kept with a job, what makes two of them alike, and what a log may print."""

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Final, TypeGuard, TypeVar

Given = TypeVar("Given")
Answer = TypeVar("Answer")
Kind = TypeVar("Kind")

MESSAGE: Final = 2_000
"""Characters of one exception's message that its text has."""
SHOWN: Final = 200
"""Characters of a value that an error names."""
LONGEST_LOGGED: Final = 20_000
"""Characters of the messages of an error, and of those that it came from, that a log prints."""

_FIRST_FRAMES: Final = 1
_LAST_FRAMES: Final = 5
_LINE: Final = 300
_LEAVES: Final = 5
_CAUSES: Final = 3
_RELATED: Final = 1_000
"""Exceptions that are looked at: a group may hold any number, and a chain may be a circle."""
_OURS: Final = frozenset(
    {
        "lowkiq_lambda.base.forks",
        "lowkiq_lambda.settings.protocols",
        "lowkiq_lambda.engine.perform",
        "lowkiq_lambda.engine.coroutines",
        "lowkiq_lambda.engine.iteration",
    }
)
"""The code that calls a handler: its frames are the same in every traceback."""
_NAME: Final = type.__dict__["__name__"]
_TRACEBACK: Final = BaseException.__dict__["__traceback__"]
_ADDRESS: Final = r"\b0x[0-9a-fA-F]+"


class Shortened(Exception):
    """Stands in a log for an error whose message is too long for it, or cannot be had."""


def cut(text: str, length: int) -> str:
    """The text, or its beginning and its end with a mark between them, of that length at most.

    >>> cut("a" * 60 + "b" * 60, 60)
    'aaaaaaaaaaaaaaaaaaa [of 120 characters] bbbbbbbbbbbbbbbbbbbb'
    >>> cut("KeyError: 'amount_cents'", 12)
    "KeyEr…cents'"
    """
    if len(text) <= length:
        return text
    mark = f" [of {len(text):,} characters] "
    if 2 * len(mark) > length:
        mark = "…"
    room = length - len(mark)
    return text[: room // 2] + mark + text[len(text) - (room - room // 2) :]


def shown(value: object, length: int = SHOWN) -> str:
    """A value as an error names it: its `repr`, cut, if it has one.

    >>> shown("x" * 60, 50)
    "'xxxxxxxxxxxxxx [of 62 characters] xxxxxxxxxxxxxx'"
    >>> shown(10**5_000)
    '<int>'
    """
    text, broken = call_safely(repr, value)
    return f"<{type_name(value)}>" if broken is not None else cut(plain(text or ""), length)


def brief(text: str, length: int) -> str:
    r"""Of a longer text the first line and the last, of that length at most.

    >>> brief("KeyError: 'a'\n  File \"shop.py\", line 31, in sync\n    order['a']", 40)
    "KeyError: 'a'\n…\n    order['a']"
    """
    if len(text) <= length:
        return text
    first, *rest = text.rstrip("\n").split("\n")
    return cut("\n".join([first, *["…"][: len(rest) - 1], *rest[-1:]]), length)


def call_safely(
    function: Callable[[Given], Answer], argument: Given
) -> tuple[Answer, None] | tuple[None, BaseException]:
    """The function's result, or the exception that it raises itself, as `own_error` defines it.

    Compare the exception with None: a user's error may raise if its truth is tested.
    """
    try:
        return function(argument), None
    except BaseException as error:  # noqa: BLE001 - the caller decides
        return None, own_error(error, function, argument)


def is_a(error: object, kinds: type[Kind] | tuple[type[Kind], ...]) -> TypeGuard[Kind]:
    """Whether the error is of one of the kinds, by its type alone: `isinstance` asks an object for its class."""
    return issubclass(type(error), kinds)


def plain(text: str | BaseException) -> str:
    """The characters of a text, of whatever class it is: one of its own may raise wherever it is read."""
    return str.__str__(text)


def type_name(error: object) -> str:
    """The name of its type, whatever the metaclass says.

    >>> type_name(KeyError("amount_cents"))
    'KeyError'
    """
    return plain(_NAME.__get__(type(error)))


def unreadable(error: object) -> str:
    """The text of an error that raises if it is read."""
    return f"{type_name(error)} (it cannot be read)"


def own_error(error: BaseException, function: Callable[[Given], object], argument: Given) -> BaseException:
    """The exception that the function raises itself, after a call of it has just raised `error`.

    While it runs, an interruption may also come from outside (Ctrl-C, a signal's handler). A second call tells them
    apart: if it raises too, the exception is the function's own; otherwise the interruption is raised.
    """
    if is_a(error, Exception):
        return error
    try:
        function(argument)
    except BaseException as again:  # noqa: BLE001 - the caller decides
        return again
    raise error


def say_error(error: BaseException) -> str:
    """The default text of an error that is kept with its job.

    `Type: message` in the first line, then the first and the last frames of the traceback, then the same of its causes.
    A group has its leaves in the first line, then the frames and causes of the first leaf, and the last frame of each
    other one. Files are named from where they are imported, without the folders of the machine above that.
    """
    first, *others = islice(_leaves(error), _LEAVES)
    lines = [headline(error), *_notes(error)]
    for number, link in enumerate(islice(_chain(first), 1 + _CAUSES)):
        lines += [f"caused by {headline(link)}"] if number else []
        lines += _frames(link)
    for leaf in others:
        lines += [f"also {headline(leaf)}", *_lines(_own_frames(leaf)[-1:])]
    return "\n".join(lines)


def headline(error: BaseException) -> str:
    """`Type: message`, with the leaves of a group; for any exception, also one without a message or whose `str` raises.

    >>> headline(KeyError("amount_cents"))
    "KeyError: 'amount_cents'"
    >>> headline(ExceptionGroup("unhandled errors", [TimeoutError(), ValueError("no")]))
    'ExceptionGroup: unhandled errors (2 sub-exceptions): TimeoutError; ValueError: no'
    """
    text, broken = call_safely(_headline, error)
    return unreadable(error) if broken is not None else text or ""


def _headline(error: BaseException) -> str:
    if not isinstance(error, BaseExceptionGroup):
        return _type_and_message(error)
    leaves = [*islice(_leaves(error), _RELATED)]
    texts = [_type_and_message(leaf) for leaf in leaves[:_LEAVES]]
    more = [f"and {len(leaves) - _LEAVES:,} more"] if leaves[_LEAVES:] else []
    return f"{_type_and_message(error)}: {'; '.join([*texts, *more])}"


def own_places(error: BaseException) -> str:
    """The frames that the text of an error has, in one line, such as `shop.py:12 in perform_job > shop.py:31 in total`.

    "" for an error without a frame of the user's, or one that cannot be read.
    """
    return call_safely(_own_places, error)[0] or ""


def _own_places(error: BaseException) -> str:
    frames = _own_frames(next(_leaves(error)))
    roots = (*sys.path, sys.prefix, sys.base_prefix)
    places = [
        f"{_in_project(frame.f_code.co_filename, roots)}:{line} in {frame.f_code.co_name}" for frame, line in frames
    ]
    most = _FIRST_FRAMES + _LAST_FRAMES
    return " > ".join(places if len(places) <= most else [*places[:_FIRST_FRAMES], "…", *places[-_LAST_FRAMES:]])


def signature(error: BaseException | str) -> str:
    """The same for errors that are alike: by types and messages, of the leaves and of what these were caused by.

    Without addresses of objects, which differ each time, and without tracebacks, as one cause is met in many places.
    """
    if is_a(error, BaseException):
        text, _ = call_safely(_all_types_and_causes, error)
        # An unreadable error has no known likeness to others.
        parts = text or {unreadable(error)}
    else:
        parts = {f"str: {plain(error)}"}
    alike = re.sub(_ADDRESS, "0x", "\n".join(sorted(parts)))
    return sha256(alike.encode(errors="backslashreplace")).hexdigest()


def loggable(error: BaseException) -> BaseException:
    """The error as it may be given to a log: itself, or, with its traceback, one that says it in fewer characters."""
    text, broken = call_safely(_loggable, error)
    if broken is not None or text is None:
        return Shortened(unreadable(error)).with_traceback(_TRACEBACK.__get__(error))
    return text


def _loggable(error: BaseException) -> BaseException:
    left = LONGEST_LOGGED
    for number, related in enumerate(_related(error)):
        text, broken = call_safely(_all_text, related)
        # A log asks for them, too.
        _ = bool(related), type(related).__qualname__, type(related).__module__, related.__traceback__
        left -= len(text or "")
        if broken is not None or left < 0 or number >= _RELATED:
            return Shortened(headline(error)).with_traceback(error.__traceback__)
    return error


def _type_and_message(error: BaseException) -> str:
    message, broken = call_safely(str, error)
    if broken is not None:
        return f"{type_name(error)} (its message raised {type_name(broken)})"
    message = plain(message or "")
    return f"{type_name(error)}: {cut(message, MESSAGE)}" if message else type_name(error)


def _all_types_and_causes(error: BaseException) -> set[str]:
    return {_type_and_cause(leaf) for leaf in islice(_leaves(error), _RELATED)}


def _type_and_cause(leaf: BaseException) -> str:
    texts = []
    for link in islice(_chain(leaf), 1 + _CAUSES):
        message, _ = call_safely(str, link)
        texts.append(f"{type(link).__qualname__}: {None if message is None else plain(message)}")
    return "\n".join(texts)


def _notes(error: BaseException) -> list[str]:
    noted = getattr(error, "__notes__", None)
    return [cut(note, MESSAGE) for note in noted if isinstance(note, str)] if isinstance(noted, list) else []


def _all_text(error: BaseException) -> str:
    return str(error) + "".join(getattr(error, "__notes__", ()))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, and of groups in it; of any other error itself."""
    left = [error]
    while left:
        member = left.pop()
        if isinstance(member, BaseExceptionGroup):
            left += reversed(member.exceptions)
        else:
            yield member


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was caused by, and so on; it may go on for ever."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = _cause(link)


def _cause(error: BaseException) -> BaseException | None:
    """The words of a traceback for it: "the direct cause", or "during handling of"."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _related(error: BaseException) -> Iterator[BaseException]:
    """All that a traceback of the error prints, each once."""
    left, visited = [error], set[int]()
    while left:
        related = left.pop()
        if id(related) in visited:
            continue
        visited.add(id(related))
        yield related
        cause = _cause(related)
        left += [] if cause is None else [cause]
        left += related.exceptions if isinstance(related, BaseExceptionGroup) else []


def _frames(error: BaseException) -> Iterable[str]:
    frames = _own_frames(error)
    left_out = len(frames) - _FIRST_FRAMES - _LAST_FRAMES
    if left_out <= 0:
        return _lines(frames)
    first, last = _lines(frames[:_FIRST_FRAMES]), _lines(frames[-_LAST_FRAMES:])
    return [*first, f"  [{left_out:,} frames left out]", *last]


def _own_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    frames = traceback.walk_tb(error.__traceback__)
    return [(frame, line) for frame, line in frames if frame.f_globals.get("__name__") not in _OURS]


def _lines(frames: Iterable[tuple[FrameType, int]]) -> list[str]:
    summary = traceback.StackSummary.extract(frames)
    roots = (*sys.path, sys.prefix, sys.base_prefix)
    for frame in summary:
        # The line of code is read from the file's place, and kept.
        _ = frame.line
        frame.filename = _in_project(frame.filename, roots)
    formatted = "".join(summary.format())
    return [cut(line, _LINE) for line in formatted.splitlines()]


# An outage has a thousand tracebacks of the same few files.
@lru_cache(maxsize=512)
def _in_project(filename: str, roots: tuple[str, ...]) -> str:
    """The path of a file from the folder of its imports: the folders above depend on the machine."""
    path = Path(filename)
    if not path.is_absolute():
        return filename
    folders = [Path(root).absolute() for root in roots]
    above = [folder for folder in folders if path.is_relative_to(folder) and folder.name]
    return path.relative_to(max(above, key=lambda root: len(root.parts), default=path.parent)).as_posix()


def text_to_bytes(text: str) -> bytes:
    """The default way to store an error's text."""
    return text.encode(errors="backslashreplace")


def bytes_to_text(stored: bytes) -> str:
    """The default way to read an error's text, whatever the bytes are."""
    return stored.decode(errors="replace")
