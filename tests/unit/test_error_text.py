"""Errors in words: what is kept of them, what makes them alike, and what a log prints."""

import asyncio
import io
import logging
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda.base.error_text import LONGEST_LOGGED, call_safely, cut, headline, loggable, say_error, signature


def raised(raising: Callable[[], object]) -> BaseException:
    """What the callable raises."""
    try:
        raising()
    except BaseException as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError("nothing was raised")


def look_up(order: dict[str, int]) -> int:
    """Raises KeyError for most orders."""
    return order["amount_cents"]


def nested(depth: int) -> None:
    """Raises ValueError so many calls further down."""
    if depth == 0:
        raise ValueError("too deep")
    nested(depth - 1)


async def in_a_group(*errors: BaseException) -> None:
    """Raises them out of a TaskGroup."""

    async def fail(error: BaseException) -> None:
        raise error

    async with asyncio.TaskGroup() as group:
        for error in errors:
            group.create_task(fail(error))


def group_of(*errors: BaseException) -> BaseException:
    """The group that a TaskGroup raises for them."""
    return raised(lambda: asyncio.run(in_a_group(*errors)))


class Unprintable(Exception):
    """Its text raises."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


def test_the_text_of_an_error_has_its_type_and_the_frames() -> None:
    """The first line is `Type: message`, the last one the source that raised, as in Python's own traceback."""
    lines = say_error(raised(lambda: look_up({}))).splitlines()

    assert "KeyError: 'amount_cents'" == lines[0]
    assert lines[-2].startswith('  File "')
    assert lines[-2].endswith(", in look_up")
    assert '    return order["amount_cents"]' == lines[-1]


def test_the_text_of_an_error_that_was_not_raised_is_its_first_line() -> None:
    """An error that a handler names without raising it has no frames."""
    assert ["ValueError: no", "ValueError"] == [say_error(ValueError("no")), say_error(ValueError())]


def test_of_many_frames_the_first_and_the_last_are_in_the_text() -> None:
    """A deep traceback is bounded, with a mark where frames are left out."""
    lines = say_error(raised(lambda: nested(500))).splitlines()

    assert "ValueError: too deep" == lines[0]
    assert lines[1].endswith(", in raised")
    assert "  [497 frames left out]" == lines[3]
    assert '    raise ValueError("too deep")' == lines[-1]
    assert len(lines) < 20


def test_the_text_of_an_error_says_what_it_was_caused_by() -> None:
    """Where one error was raised for another, both are told."""

    def sync() -> None:
        try:
            look_up({})
        except KeyError as error:
            raise ValueError("no such order") from error

    lines = say_error(raised(sync)).splitlines()

    assert "ValueError: no such order" == lines[0]
    assert "caused by KeyError: 'amount_cents'" in lines
    assert '    return order["amount_cents"]' == lines[-1]


def test_the_text_of_a_group_lists_its_leaves() -> None:
    """All failures of a TaskGroup stand in the first line; below it each has its place in the code."""
    lines = say_error(group_of(raised(lambda: look_up({})), TimeoutError("the shop"))).splitlines()

    assert (
        "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions): "
        "KeyError: 'amount_cents'; TimeoutError: the shop" == lines[0]
    )
    at = lines.index("also TimeoutError: the shop")
    assert '    return order["amount_cents"]' == lines[at - 1]
    assert ["    raise error"] == lines[at + 2 :]


def test_the_leaves_of_a_large_group_are_counted() -> None:
    """Five are named."""
    group = ExceptionGroup("all", [ValueError(str(n)) for n in range(100)])

    assert headline(group).endswith("ValueError: 3; ValueError: 4; and 95 more")


def test_a_message_of_megabytes_is_cut_in_the_text() -> None:
    """The beginning and the end of it are kept, and the frames."""
    text = say_error(raised(lambda: (_ for _ in ()).throw(ValueError("begin" + "x" * 5_000_000 + "end"))))

    assert len(text) < 4_000
    assert text.startswith("ValueError: beginxxx")
    assert "xxxend\n" in text
    assert "[of 5,000,008 characters]" in text


def test_errors_that_were_caused_by_each_other_have_a_text() -> None:
    """A circle of causes ends."""
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    assert say_error(one).splitlines()[:2] == ["ValueError: one", "caused by ValueError: other"]
    assert signature(one) != signature(other)
    assert loggable(one) is one


@pytest.mark.parametrize("length", [1, 2, 10, 60, 61, 200, 999])
def test_a_text_is_cut_to_its_length(length: int) -> None:
    """In the middle, with a mark, whatever the length."""
    text = cut("a" * 500 + "b" * 500, length)

    assert length == len(text)
    assert "…" in text or " [of 1,000 characters] " in text


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (group_of(TimeoutError("the shop")), group_of(TimeoutError("the shop")), True),
        (group_of(TimeoutError("the shop")), group_of(ConnectionError("the shop")), False),
        (group_of(ValueError("a"), ValueError("b")), group_of(ValueError("b"), ValueError("a")), True),
        (ValueError("<Order at 0x7f01>"), ValueError("<Order at 0x7fA2>"), True),
        (ValueError("order 1"), ValueError("order 2"), False),
        (ValueError("order"), KeyError("order"), False),
        (raised(lambda: nested(3)), raised(lambda: nested(7)), True),
        ("down", "down", True),
        ("down", "up", False),
    ],
)
def test_errors_are_alike_by_types_and_messages_of_their_leaves(one: Any, other: Any, *, alike: bool) -> None:
    """Addresses, the order of a group and the way through the code make no difference; what failed does."""
    assert alike == (signature(one) == signature(other))


def test_errors_are_not_alike_where_their_causes_are_not() -> None:
    """A handler that wraps whatever happens does not make all of it the same."""
    wrapped = [ValueError("no order"), ValueError("no order"), ValueError("no order")]
    wrapped[0].__cause__, wrapped[1].__cause__, wrapped[2].__cause__ = KeyError("a"), KeyError("a"), KeyError("b")

    assert 2 == len({signature(error) for error in wrapped})
    assert signature(wrapped[0]) == signature(wrapped[1])


def noted(error: BaseException, note: str) -> BaseException:
    """The error with a note."""
    error.add_note(note)
    return error


def caused(error: BaseException, cause: BaseException) -> BaseException:
    """The error that was raised from another."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x" * 5_000_000),
        ExceptionGroup("all", [ValueError("x" * 5_000_000)]),
        ExceptionGroup("all", [ValueError("x" * 1_000)] * 100),
        caused(ValueError("short"), KeyError("x" * 5_000_000)),
        noted(ValueError("short"), "x" * 5_000_000),
        Unprintable(),
    ],
)
def test_what_a_log_prints_of_an_error_is_bounded(error: BaseException) -> None:
    """A message of megabytes is cut, wherever in the error it is, and one that cannot be had breaks no log."""
    stream = io.StringIO()
    logger = logging.getLogger("tests.bounded")
    logger.propagate = False
    logger.addHandler(logging.StreamHandler(stream))

    logger.warning("a batch failed", exc_info=loggable(error))

    assert len(stream.getvalue()) < LONGEST_LOGGED + 2_000
    assert type(error).__name__ in stream.getvalue()


def test_what_a_log_prints_of_most_errors_is_the_error() -> None:
    """Whoever reads logs by their exceptions is given the one that was raised."""
    error = raised(lambda: look_up({}))

    assert error is loggable(error)


def test_an_interruption_from_outside_is_told_apart() -> None:
    """What a callable raises each time is its own; what it raises once is raised."""
    calls: list[int] = []

    def once(given: int) -> int:
        calls.append(given)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return given

    def always(_given: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_safely(once, 1)
    answer, broken = call_safely(always, 1)
    assert (None, KeyboardInterrupt) == (answer, type(broken))
