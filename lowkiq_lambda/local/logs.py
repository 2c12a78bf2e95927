"""Structured logs: a message and fields, for people as `message key=value`, for machines as a line of JSON.

Each entry of `extra` in a log call becomes a field.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, Literal, TextIO, TypeAlias

from lowkiq_lambda.base.error_text import say_error

_ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
LogFormat: TypeAlias = Literal["text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
_NEEDS_QUOTES: Final = re.compile(r'[\s"=\\]|^$')
# What would move the cursor, start a new line or colour the terminal in the midst of a message.
_UNSEEN: Final = (0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
"""Characters that are invisible, or that turn the direction of what follows."""
_CONTROLS: Final = (
    {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(0x80, 0xA0))}
    | {code: f"\\u{code:04x}" for code in _UNSEEN}
    | {ord("\n"): "\\n", ord("\t"): "\\t"}
)
_CONTROLS_IN_LINES: Final = {code: text for code, text in _CONTROLS.items() if chr(code) not in "\n\t"}
_FURTHER: Final = "| "
"""In front of each line of a record but the first: an error's message may look like a line of the log."""
_COLOURS: Final = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


def set_up_logs(
    level: LogLevel, log_format: LogFormat, stream: TextIO, fields: Mapping[str, object] | None = None
) -> None:
    """Send all logs of this process to the stream, each with these fields, in place of the earlier handlers."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines(is_terminal=_has_colours(stream)))
    if fields:
        handler.addFilter(partial(_with_fields, fields))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)


class TextLines(logging.Formatter):
    """A line of text; on a terminal the time alone, elsewhere the date with it, and no colours."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, and the lines of its traceback, each behind a mark."""
        fields = "".join(f" {self._dim(f'{name}=')}{_quoted(value)}" for name, value in _fields(record).items())
        line = f"{self._time(record)} {self._level(record)} {record.getMessage().translate(_CONTROLS)}{fields}"
        trace = _trace(self, record).translate(_CONTROLS_IN_LINES)
        return "\n".join([line, *(f"{_FURTHER}{further}" for further in trace.split("\n"))]) if trace else line

    def _time(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone()
        if self._is_terminal:
            return self._dim(f"{at:%H:%M:%S}.{at.microsecond // 1000:03}")
        return at.isoformat(timespec="milliseconds")

    def _level(self, record: logging.LogRecord) -> str:
        text = f"{record.levelname:<7}"
        colour = _COLOURS.get(record.levelname, "0")
        return f"\x1b[{colour}m{text}\x1b[0m" if self._is_terminal else text

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._is_terminal else text


class JsonLines(logging.Formatter):
    """A line of JSON, with the names that Powertools gives to fields on Lambda: a fleet has one schema.

    timestamp (UTC), level, name (of the logger), thread, message, the fields of the record; with an error exception
    (its traceback) and exception_name.
    """

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - as logging has it
        """The error as it is kept with jobs, and as functions log it: without what every traceback has."""
        return "" if ei[1] is None else say_error(ei[1])

    def format(self, record: logging.LogRecord) -> str:
        """The record's line."""
        line = {
            **_fields(record),
            "level": record.levelname,
            "message": record.getMessage(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "name": record.name,
            "thread": record.threadName,
        }
        if record.exc_info and record.exc_info[0]:
            line["exception_name"] = record.exc_info[0].__name__
        trace = _trace(self, record)
        if trace:
            line["exception"] = trace
        return json.dumps(line, default=str)


def _with_fields(fields: Mapping[str, object], record: logging.LogRecord) -> bool:
    vars(record).update(fields)
    return True


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _quoted(value: object) -> str:
    if isinstance(value, list | tuple):
        # As JSON, too: an element may hold a comma.
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = str(value)
        text = json.dumps(text, ensure_ascii=False) if _NEEDS_QUOTES.search(text) else text
    return text.translate(_CONTROLS)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [formatter.formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(parts)


def _has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
