"""The course of a fuzz: equal for a seed, cheap, and it leaves nothing behind."""

import logging
import sys
import threading
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lowkiq_lambda import Batch, ConfigError, kill_on
from lowkiq_lambda.testing import AppUnderTest
from lowkiq_lambda.testing.fuzz.report import FuzzFailed
from lowkiq_lambda.testing.fuzz.run import fuzz
from tests.fuzz import planted
from tests.fuzz.fuzzing import options_of

MOST_COMMANDS = 400
"""Of the server for a scenario, with those that scripts call: some 260 are used, and take 3 ms of its processor. In all
a scenario is to take 20 ms of processors at most."""


def test_two_runs_of_a_seed_are_equal(lowkiq: AppUnderTest) -> None:
    """Byte for byte: texts, calls of the handler and states of all scenarios, also of random ones."""
    options = options_of("CounterMended", scenarios=130, seed=7, faults=["die", "after_handler"])
    first, second = (fuzz(lowkiq.app, lowkiq.clock, planted.CounterMended, options) for _ in range(2))

    assert first.digest == second.digest
    assert str(replace(first, seconds=0.0)) == str(replace(second, seconds=0.0))


def test_seeds_differ(lowkiq: AppUnderTest) -> None:
    """Random scenarios are others with another seed."""
    found = {
        fuzz(
            lowkiq.app, lowkiq.clock, planted.Counter, options_of("Counter", scenarios=20, faults=(), merges=False)
        ).digest
        for _ in range(2)
    }
    other = options_of("PagesMended", scenarios=20, faults=(), seed=3)
    one = options_of("PagesMended", scenarios=20, faults=(), seed=4)

    assert 1 == len(found)
    digests = {fuzz(lowkiq.app, lowkiq.clock, planted.PagesMended, options).digest for options in (one, other)}
    assert 2 == len(digests)


def test_a_scenario_is_a_few_commands(lowkiq: AppUnderTest) -> None:
    """The bound on processor time, as a count that is the same on each machine."""
    client = lowkiq.app.core.backend.client
    before = _commands(client)

    report = lowkiq.fuzz(planted.PartialMended, **options_of("PartialMended"))

    assert (_commands(client) - before) / report.scenarios <= MOST_COMMANDS


def _commands(client: Any) -> int:
    return int(client.info("stats")["total_commands_processed"])


def test_nothing_is_left_behind(lowkiq: AppUnderTest) -> None:
    """No thread, no trace function, no middleware, no job; and the log is as it was."""
    threads, trace = {*threading.enumerate()}, sys.gettrace()
    logger = logging.getLogger("lowkiq_lambda")
    before = [*lowkiq.app.client_middlewares], logger.level, planted.Awaited.concurrency

    fuzz(lowkiq.app, lowkiq.clock, planted.Awaited, options_of("Awaited", scenarios=40))

    assert before == ([*lowkiq.app.client_middlewares], logger.level, planted.Awaited.concurrency)
    assert trace is sys.gettrace()
    for thread in {*threading.enumerate()} - threads:
        thread.join(10.0)
    assert set() == {*threading.enumerate()} - threads
    lowkiq.assert_empty()


def test_the_time_ends_a_fuzz(lowkiq: AppUnderTest) -> None:
    """If no number of scenarios does; a glance is enough for a first scenario."""
    report = lowkiq.fuzz(planted.PagesMended, **options_of("PagesMended", scenarios=None, seconds=0.2))

    assert [] == report.findings


def test_a_handler_that_fails_by_itself_is_not_judged(lowkiq: AppUnderTest) -> None:
    """The payloads are to blame, and the text has the handler's error."""
    worker = lowkiq.app.worker(queue_name="fails")(_fail)
    try:
        with pytest.raises(ConfigError, match="fails without any fault, by ZeroDivisionError: of its own"):
            lowkiq.fuzz(worker, payloads=[1], state=lambda: None)
    finally:
        lowkiq.app.workers.remove(worker.worker) if worker.worker in lowkiq.app.workers else None


def test_a_job_that_a_rule_kills_is_judged_beside_the_others(lowkiq: AppUnderTest) -> None:
    """An invalid payload is dead in the plain run, too; a rule that kills a repeat is found."""
    state: list[int] = []

    def perform(batch: Batch[int]) -> None:
        for job_id, payloads in batch.items():
            for payload in payloads:
                if payload == 3 or (payload > 3 and payload in state and batch.job(job_id).repeated):
                    raise ValueError("it is invalid, or there already")
                state[:] = sorted({*state, payload})

    worker = lowkiq.app.worker(queue_name="kills", on_error=(kill_on(ValueError),))(perform)
    fuzz_it = partial(lowkiq.fuzz, worker, state=lambda: [*state], reset=state.clear, scenarios=80, versions=False)
    try:
        assert [] == fuzz_it(payloads=[1, 2, 3]).findings
        with pytest.raises(FuzzFailed, match="no job is dead"):
            fuzz_it(payloads=[4, 5], merges=False)
    finally:
        lowkiq.app.workers.remove(worker.worker) if worker.worker in lowkiq.app.workers else None


def _fail(_batch: object) -> None:
    raise ZeroDivisionError("of its own")


def test_a_handler_that_is_different_each_time_is_not_judged(lowkiq: AppUnderTest) -> None:
    """The state has something in it that no two runs share."""
    numbers = iter(range(1_000))

    with pytest.raises(ConfigError, match="leave times, tokens and random values out of `state`"):
        lowkiq.fuzz(planted.PagesMended, **options_of("PagesMended", state=lambda: next(numbers)))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"payloads": []}, "A fuzz needs a payload at least"),
        ({"faults": ["dye"]}, "There is no fault 'dye'"),
        ({"ids": 0}, "ids= is a number from 1 to 10"),
        ({"plan": "[]"}, "it pushes nothing"),
        ({"plan": '[["pull"]]'}, "'pull' is not a step"),
        ({"plan": '[["push","1",{"status":"lost"},1.0]]'}, "is not of the worker's type"),
        ({"isolate": print}, "isolate= cannot put back"),
        ({"outside": ["nowhere.at_all"]}, "outside=: 'nowhere.at_all' cannot be imported"),
        ({"watch": ["tests.fuzz.planted.nothing"]}, "watch=: 'tests.fuzz.planted.nothing' cannot be watched"),
        ({"stat": None}, "A fuzz has no option 'stat'"),
        ({"versions": False}, 'versions = false: PagesMended has merge = "latest", so each of its pushes needs'),
    ],
)
def test_wrong_options_are_refused(lowkiq: AppUnderTest, options: dict[str, Any], text: str) -> None:
    """With a sentence that names them."""
    with pytest.raises(ConfigError) as error:
        lowkiq.fuzz(planted.PagesMended, **options_of("PagesMended", **options))

    assert text in str(error.value)
