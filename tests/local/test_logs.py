"""How a log record looks to people, and to machines."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from lowkiq_lambda.local.logs import JsonLines, TextLines, set_up_logs
from tests.kit.typing_in import Terminal

NASTY = "two\nlines \x1b[31mred\x1b[0m"


def record(message: str = "hello", **fields: object) -> logging.LogRecord:
    """A record with these fields."""
    made = logging.makeLogRecord({"msg": message, "levelname": "INFO", "name": "shop", "created": 1_800_000_000.5})
    vars(made).update(fields)
    return made


def with_error() -> logging.LogRecord:
    """A record with a traceback."""
    made = record()
    try:
        int("broken")
    except ValueError:
        made.exc_info = sys.exc_info()
    return made


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """The root logger, put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield root
    root.handlers = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def test_a_line_for_people_has_time_level_message_and_fields() -> None:
    """Fields stand behind the message, quoted where they would be taken for several."""
    line = TextLines(is_terminal=False).format(record("started", threads=5, queue="a b", empty="", all=["a,b", "c", 1]))

    time, rest = line.split(" ", 1)
    assert time.startswith("2027-01-15T")
    assert 'INFO    started threads=5 queue="a b" empty="" all=["a,b", "c", 1]' == rest


def test_a_line_for_people_stays_one_line() -> None:
    """What a message holds moves no cursor, colours no terminal, and starts no line that looks like a log."""
    line = TextLines(is_terminal=True).format(record(NASTY, what=NASTY))

    assert "\n" not in line
    assert "two\\nlines \\x1b[31mred" in line
    assert '"two\\nlines \\u001b[31mred' in line


def test_a_traceback_moves_no_cursor() -> None:
    """What an error's text holds is shown, and its lines stay lines."""
    nasty = record(exc_info=(ValueError, ValueError("a\0b\x1b[31m\nc"), None))
    lines = TextLines(is_terminal=False).format(nasty).split("\n")

    assert ["| ValueError: a\\x00b\\x1b[31m", "| c"] == lines[-2:]


def test_no_message_of_an_error_looks_like_a_line_of_the_log() -> None:
    """Each further line has a mark, whatever the message, a note or a cause of the error holds."""
    fake = "2026-11-24T00:00:00.000+00:00 INFO    'olga': delete_all"
    error = ValueError(f"x\n{fake}\r{fake}\u2028{fake}")
    error.add_note(f"y\n{fake}")
    error.__cause__ = KeyError(f"z\n{fake}")
    lines = TextLines(is_terminal=False).format(record(exc_info=(ValueError, error, None)))

    first, *more = lines.splitlines()
    assert first.endswith("hello")
    assert [] == [line for line in more if not line.startswith("| ")]


def test_what_turns_the_direction_of_text_is_shown() -> None:
    """An id reads as it is: nothing in it is unseen, or turns what follows."""
    line = TextLines(is_terminal=False).format(record("\u202eabc", id="a\u202eb\u2066\u200b", ids=["\u202e"]))

    assert r'\u202eabc id=a\u202eb\u2066\u200b ids=["\u202e"]' in line


def test_a_traceback_follows_its_line() -> None:
    """People read it as Python prints it."""
    first, *more = TextLines(is_terminal=False).format(with_error()).splitlines()

    assert first.endswith("INFO    hello")
    assert "| Traceback (most recent call last):" == more[0]
    assert more[-1].startswith("| ValueError: invalid literal")


def test_a_terminal_has_colours_and_less_time() -> None:
    """On a terminal the date is known, and a level is seen from afar."""
    line = TextLines(is_terminal=True).format(record())

    assert "2027" not in line
    assert "\x1b[32mINFO   \x1b[0m hello" in line


def test_a_line_for_machines_is_one_object() -> None:
    """All that is known has a name, whatever it is; what no JSON has is text."""
    line = JsonLines().format(record(NASTY, threads=5, path=object, level="mine"))

    assert "\n" not in line
    told = json.loads(line)
    assert told.items() >= {"level": "INFO", "name": "shop", "threads": 5, "message": NASTY}.items()
    assert "2027-01-15T08:00:00.500+00:00" == told["timestamp"]
    assert "<class 'object'>" == told["path"]


def test_a_traceback_is_a_field_for_machines() -> None:
    """One record is one line, its traceback too."""
    told = json.loads(JsonLines().format(with_error()))

    assert "ValueError: invalid literal" in told["exception"].splitlines()[0]
    assert "ValueError" == told["exception_name"]


@pytest.mark.parametrize(
    ("stream", "no_color", "has_colours"),
    [(io.StringIO(), "", False), (Terminal(), "", True), (Terminal(""), "1", False)],
)
def test_colours_are_for_terminals_that_want_them(
    root_logger: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
    stream: io.StringIO,
    no_color: str,
    has_colours: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """A file or a pipe gets none, and NO_COLOR is heard."""
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    set_up_logs("info", "text", stream)
    root_logger.info("hello")
    root_logger.debug("too small")

    assert has_colours == ("\x1b" in stream.getvalue())
    assert 1 == len(stream.getvalue().splitlines())


def test_json_is_never_coloured(root_logger: logging.Logger) -> None:
    """Machines may read from what says it is a terminal."""
    stream = Terminal()
    set_up_logs("warning", "json", stream)
    root_logger.warning("hello")

    assert "hello" == json.loads(stream.getvalue())["message"]
