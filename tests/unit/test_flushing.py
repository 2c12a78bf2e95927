"""`@app.flushes`, by what it asks of a flush."""

import asyncio
from typing import Any

import pytest

from lowkiq_lambda import DeclarationError, NotFlushed
from lowkiq_lambda.push.flushing import flushing


class Flush:
    """Leaves as many jobs as it is told, and notes for how many seconds it was called."""

    def __init__(self, left: int = 0) -> None:
        self.left = left
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> int:
        """How many are left."""
        self.seconds.append(seconds)
        return self.left


class Invoked:
    """That of an invocation with so many seconds left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        """As Lambda tells it."""
        return int(self.seconds * 1_000)


def echo(event: object, _context: object) -> object:
    """Return the event."""
    return event


def test_the_answer_is_given_when_all_is_written() -> None:
    """The handler's answer comes through, behind one flush."""
    flush = Flush()

    assert ({"a": 1}, [5.0]) == (flushing(flush, echo)({"a": 1}, None), flush.seconds)


def test_what_is_left_is_an_error() -> None:
    """S-4: the process may never run again, so the caller learns that jobs are not written."""
    with pytest.raises(NotFlushed, match=r"\(3 jobs\)") as raised:
        flushing(Flush(3), echo)({}, None)

    assert 3 == raised.value.jobs


def test_an_error_of_the_handler_stays_its_own() -> None:
    """It flushes then, too, and the error has a note of what is left."""

    def broken(_event: object, _context: object) -> None:
        raise KeyError("order")

    flush = Flush(2)
    with pytest.raises(KeyError) as raised:
        flushing(flush, broken)({}, None)

    assert ([5.0], ["(2 jobs)"]) == (flush.seconds, [note[-8:] for note in raised.value.__notes__])


@pytest.mark.parametrize(("remaining", "seconds"), [(60.0, 5.0), (2.0, 1.5), (0.1, 0.0)])
def test_a_flush_takes_no_longer_than_the_invocation_has(remaining: float, seconds: float) -> None:
    """Half a second of it stays for the answer."""
    flush = Flush()
    flushing(flush, echo)({}, Invoked(remaining))

    assert [pytest.approx(seconds)] == flush.seconds


def test_a_coroutine_function_is_refused() -> None:
    """It would be flushed behind before it has begun."""

    async def handler(_event: Any) -> None:
        await asyncio.sleep(0)

    with pytest.raises(DeclarationError, match="coroutine function"):
        flushing(Flush(), handler)
