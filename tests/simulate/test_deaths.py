"""Payloads that fail for good, in the model and in the engine."""

from typing import Any, Final

import msgspec
import pytest

from lowkiq_lambda import Batch
from lowkiq_lambda.cli import main
from lowkiq_lambda.simulate import Choice, Times, Trace, simulate
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.workers import declare

TIMES: Final = Times(fixed=0.001)
HOPELESS: Final = 0.999_999
"""So many fail that none is ever done by chance."""
RETRIES: Final = Choice().max_retry_count


def of_ids(count: int, payloads: int = 1) -> Trace:
    """All of them at once."""
    return Trace.of_rows((0.0, number, payloads) for number in range(count))


def failing(**changes: Any) -> Choice:
    """A daemon of one thread, whose calls fail."""
    return msgspec.structs.replace(Choice(shards=1, threads=1, failures=HOPELESS), **changes)


def test_a_payload_dies_after_its_last_retry_as_late_as_the_page_of_retries_says() -> None:
    """After 25 retries, some twenty days after its first failure."""
    outcome = simulate(of_ids(3), TIMES, failing())

    assert (3, 3 * (1 + RETRIES), 3) == (outcome.jobs, outcome.calls, outcome.dead)
    assert sum(count**4 + 15 for count in range(RETRIES)) == pytest.approx(outcome.end, abs=1.0)
    assert 20 == pytest.approx(outcome.end / 86_400, abs=0.5)


def test_the_share_that_dies_is_that_of_as_many_failures_in_a_row() -> None:
    """Of a thousand that fail by half, with two retries, an eighth dies."""
    outcome = simulate(of_ids(4_000), TIMES, failing(failures=0.5, max_retry_count=2, shards=4, threads=4))

    assert 4_000 / 8 == pytest.approx(outcome.dead, rel=0.1)
    assert 4_000 * (1 + 1 / 2 + 1 / 4) == pytest.approx(outcome.runs, rel=0.03)


@pytest.mark.parametrize(("retries", "payloads"), [(0, 1), (0, 3), (2, 1), (1, 3)])
def test_as_many_calls_and_deaths_as_in_the_engine(
    make_app: MakeApp, queue_name: str, clock: ManualClock, retries: int, payloads: int
) -> None:
    """The oldest payload of an id dies, and the others are as fresh: each has its own retries."""
    calls, app = list[int](), make_app()

    def handle(batch: Batch) -> None:
        calls.append(len(batch))
        for job_id in batch:
            batch.fail(job_id, "broken")

    worker = declare(app, queue_name, handle, shards_count=1, batch_size=2, max_retry_count=retries)
    worker.push_many([{"id": number, "payload": place} for number in range(6) for place in range(payloads)])
    dead = 0
    for _ in range(payloads * (retries + 1) + 1):
        dead += app.drain().get("dead", 0)
        clock.advance(7_200.0)
    # Of a schedule, so that all are pushed before the first call.
    choice = failing(max_retry_count=retries, batch=2, compute="minute")
    outcome = simulate(of_ids(6, payloads), TIMES, choice)

    assert 6 * payloads == dead
    assert (len(calls), sum(calls), dead) == (outcome.calls, outcome.runs, outcome.dead)


def test_what_is_pushed_behind_a_payload_that_dies_runs() -> None:
    """And those that are pushed while it rests, too."""
    trace = Trace.of_rows([(0.0, "a", 1), (5.0, "a", 1), (100.0, "a", 1)])
    outcome = simulate(trace, TIMES, failing(max_retry_count=1))

    assert (3, 3) == (outcome.jobs, outcome.dead)


def test_the_command_says_how_many_die(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the table, and as a number for programs."""
    words = "simulate --rate 1/m --took 1ms --ids 99 --skew 0 --computing 0 --failures 90% --try compute=daemon:1x1"
    assert 0 == main(words.split())
    output = capsys.readouterr()
    assert f"payloads die, as {RETRIES} retries are not enough." in " ".join(output.err.split())
    assert 0 == main([*words.split(), "--json"])
    assert msgspec.json.decode(capsys.readouterr().out)["dead"] > 10
