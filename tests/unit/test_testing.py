"""What users test their jobs with."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from lowkiq_lambda import BatchJob, CursorError, Later, Worker, iterate
from lowkiq_lambda.testing import Ran, run_job, run_through


class Letters(Worker):
    """Notes each letter of its payloads, and how its runs begin and end."""

    log: list[str]

    def perform_job(self, job: BatchJob) -> Iterator[Any]:
        """Yield behind each letter."""
        self.log.append("start" if job.cursor is None else "resume")
        try:
            for letter, cursor in iterate.sequence("".join(job.payloads), after=job.cursor):
                self.log.append(letter)
                yield cursor
        finally:
            self.log.append("stop")
        self.log.append("end")


@pytest.fixture
def letters() -> type[Letters]:
    """The worker with a log of its own."""
    return type("FreshLetters", (Letters,), {"log": []})


def test_a_job_runs_to_its_end(letters: type[Letters]) -> None:
    """J-20: on_start, on_shutdown and on_complete are places in the generator."""
    assert Ran(2, 3, ended=True) == run_job(letters, ["ab", "c"])
    assert ["start", "a", "b", "c", "stop", "end"] == letters.log


def test_a_job_is_stopped_where_the_test_says(letters: type[Letters]) -> None:
    """J-38, J-40: after so many items; what comes after the loop does not run, `finally` does."""
    assert Ran(1, 2, ended=False) == run_job(letters, ["abc"], stop_after=2)
    assert ["start", "a", "b", "stop"] == letters.log


def test_a_job_goes_on_from_a_cursor(letters: type[Letters]) -> None:
    """J-3, J-38: with the first item behind it."""
    assert Ran(2, 2, ended=True) == run_job(letters, ["abc"], cursor=0)
    assert ["resume", "b", "c", "stop", "end"] == letters.log


@pytest.mark.parametrize("every", [1, 2, 3, 4, 5])
def test_a_job_that_is_interrupted_does_what_it_does_in_one_go(letters: type[Letters], every: int) -> None:
    """J-38: the one comparison that users need."""
    runs = run_through(letters, ["abc", "de"], every=every)

    assert list("abcde") == [entry for entry in letters.log if len(entry) == 1]
    assert (4, 5) == (runs[-1].cursor, sum(ran.items for ran in runs))
    assert [False] * (5 // every) + [True] == [ran.ended for ran in runs]


def test_payloads_are_given_anew_to_each_run() -> None:
    """J-7: what a run changes in them, the next one does not see."""
    seen: list[Any] = []

    class Greedy(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            seen.append(job.payloads[0].pop("n", "gone"))
            if job.cursor is None:
                yield 1

    payloads = [{"n": 1}]
    run_through(Greedy, payloads)

    assert ([1, 1], [{"n": 1}]) == (seen, payloads)


def test_a_cursor_goes_through_json() -> None:
    """J-6: tuples come back as lists, and what is not JSON is refused as in a drain."""

    class Tuples(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            yield (1, 2) if job.cursor is None else datetime.now().astimezone().timetz()

    assert [1, 2] == run_job(Tuples, [], stop_after=1).cursor
    with pytest.raises(CursorError, match="JSON has no form for time"):
        run_job(Tuples, [], cursor=[1, 2])


def test_later_is_told() -> None:
    """J-12, J-15: the delay and the reason, and what was yielded before."""

    class Impatient(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            yield "a"
            raise Later(30, f"{job.id} has to wait")

    ran = run_job(Impatient, [], job_id="eu")

    assert ("a", 1, False) == (ran.cursor, ran.items, ran.ended)
    assert ran.later is not None
    assert (30.0, "eu has to wait") == (ran.later.seconds, ran.later.reason)


def test_a_job_that_waits_for_ever_is_told() -> None:
    """A test must end."""

    class Waiting(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            if job.cursor is None:
                raise Later(1, "never ready")
            yield 1

    with pytest.raises(
        AssertionError, match="Waiting ended 1,000 runs in a row at the cursor None: raised Later: never "
    ):
        run_through(Waiting, [])


@pytest.mark.parametrize("every", [1, 2])
def test_a_job_that_begins_anew_in_each_run_is_told(every: int) -> None:
    """Whoever forgets job.cursor is told so, and does not wait for ever."""

    class Forgetting(Worker):
        def perform_job(self, _job: BatchJob) -> Iterator[int]:
            yield from range(10)

    with pytest.raises(AssertionError, match=f"at the cursor {every - 1}: does it go on from job.cursor"):
        run_through(Forgetting, [], every=every)


def test_a_job_that_keeps_its_place_itself_comes_to_its_end() -> None:
    """J-37: bare yields move no cursor, so many of them are no mistake."""
    left = [*range(1_500)]

    class Popping(Worker):
        def perform_job(self, _job: BatchJob) -> Iterator[None]:
            while left:
                left.pop()
                yield

    assert 1_501 == len(run_through(Popping, []))


@pytest.mark.parametrize("cursors", [[None, None], ["to", "fro"]])
def test_a_job_that_yields_no_new_cursor_is_told(cursors: list[str | None]) -> None:
    """J-38: bare yields in a loop that begins anew, or a cursor that goes to and fro: the test ends."""
    first, second = cursors

    class Standing(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            yield second if job.cursor == first else first

    with pytest.raises(AssertionError, match="Standing ended 10,000 runs in a row at no new cursor: does it yield any"):
        run_through(Standing, [])


def test_what_the_job_raises_is_raised(letters: type[Letters]) -> None:
    """A failure is the test's."""
    with pytest.raises(CursorError, match="there are only 3 items"):
        run_job(letters, ["abc"], cursor=3)


def test_a_job_without_a_cursor_is_refused() -> None:
    """J-1: a plain handler has no items to stop at."""

    class Plain(Worker):
        def perform_job(self, job: BatchJob) -> None:
            """Nothing."""

    with pytest.raises(TypeError, match="whose perform_job is a generator, not Plain"):
        run_job(Plain, [])


def test_a_job_cannot_be_stopped_before_its_first_item(letters: type[Letters]) -> None:
    """It would never end."""
    with pytest.raises(ValueError, match="after one item or more, not 0"):
        run_through(letters, ["a"], every=0)


def test_handlers_can_ask_for_time_and_token() -> None:
    """A job that looks at its context runs in a test too."""
    seen: list[object] = []

    class Curious(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            seen.extend([job.token, job.remaining, job.stopping, job.scores, job.retry_count, job.repeated])
            job.expect(3)
            yield 1

    run_job(Curious, ["a", "b"])

    assert [1, 60.0, False, [0.0, 1.0], -1.0, False] == seen


def test_a_throttled_loop_goes_on_later() -> None:
    """J-34: asked before each item; the item that it was asked for is the first of the next run."""
    load = iter(["", "", "the database is behind", "", ""])
    done: list[str] = []

    class Throttled(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            letters = iterate.sequence("abcd", after=job.cursor)
            for letter, cursor in iterate.throttled(letters, lambda: next(load), 30):
                done.append(letter)
                yield cursor

    first, second = run_through(Throttled, [], every=9)

    assert list("abcd") == done
    assert first.later is not None
    assert (1, 30.0, "the database is behind") == (first.cursor, first.later.seconds, first.later.reason)
    assert (3, True) == (second.cursor, second.ended)
