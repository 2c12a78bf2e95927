"""What holds of each queue, and of each simulation of one: laws that need no server."""

from collections.abc import Sequence
from heapq import heapify, heapreplace
from typing import Any, Final, get_args

import msgspec
import pytest

from lowkiq_lambda.simulate import Choice, Compute, Outcome, Times, Trace, simulate
from lowkiq_lambda.simulate.failures import SimulatedFailures
from lowkiq_lambda.simulate.state import SimulatedQueue

ANOTHER: Final = pytest.mark.nightly("another of the list is part of each check")
IDEAL: Final = Choice(shards=1, threads=1, start=0.0, round_trip=0.0, engine=0.0, visit=0.0)
"""A server and an engine that take no time."""
BURST: Final = Trace.of_rates([20.0, 45.0, 10.0], ids=2_000)
TIMES: Final = Times(fixed=0.02, each_payload=0.002, spread=0.4)


def other(choice: Choice = IDEAL, **changes: Any) -> Choice:
    """The choice with some fields changed."""
    return msgspec.structs.replace(choice, **changes)


def regular(count: int, step: float) -> Trace:
    """A push each `step` seconds, each of another id."""
    return Trace.of_rows((number * step, number, 1) for number in range(count))


def mean_wait(trace: Trace, took: float, servers: int) -> float:
    """Of a line that so many servers work off, each call as long: the next one begins where one is free first."""
    free_at = [0.0] * servers
    heapify(free_at)
    waited = 0.0
    for at in trace.at:
        begin = max(at, free_at[0])
        waited += begin - at
        heapreplace(free_at, begin + took)
    return waited / trace.jobs


def mean_wait_in_batches(trace: Trace, took: float, most: int) -> float:
    """Of one server that takes up to so many at a time."""
    place, free_at, waited = 0, 0.0, 0.0
    while place < trace.jobs:
        begin = max(free_at, trace.at[place])
        end = place
        while end < trace.jobs and end - place < most and trace.at[end] <= begin:
            waited += begin - trace.at[end]
            end += 1
        place, free_at = end, begin + took
    return waited / trace.jobs


def p95s(choices: Sequence[Choice], trace: Trace = BURST) -> list[float]:
    """Of each choice on the same trace, rounded to the millisecond."""
    return [round(simulate(trace, TIMES, choice).p95, 3) for choice in choices]


def test_a_regular_queue_with_room_never_waits() -> None:
    """D/D/1: a call of 10 ms each 20 ms finds its slot free."""
    outcome = simulate(regular(500, 0.020), Times(fixed=0.010), IDEAL)

    assert (0.0, 500, 500) == (round(outcome.most, 6), outcome.jobs, outcome.calls)


def test_a_regular_queue_without_room_waits_longer_with_each_job() -> None:
    """D/D/1: calls of 20 ms each 10 ms fall behind by 10 ms a job."""
    outcome = simulate(regular(500, 0.010), Times(fixed=0.020), IDEAL)

    assert 4.99 == pytest.approx(outcome.most)
    assert 1.0 == pytest.approx(outcome.busy, abs=0.01)


@pytest.mark.parametrize(
    "spread", [0.8326, *(pytest.param(spread, marks=ANOTHER) for spread in (0.0, 0.5))], ids="spread {}".format
)
def test_a_single_slot_waits_as_pollaczek_and_khinchine_say(spread: float) -> None:
    """M/G/1: with the first spread calls vary by as much as they last, so the mean wait is that of M/M/1."""
    variation = squared_variation(spread)
    trace = Trace.of_rates([60.0] * 30, ids=400_000)

    outcome = simulate(trace, Times(fixed=0.010, spread=spread), IDEAL)

    assert 0.6 * 0.010 * (1 + variation) / (2 * 0.4) == pytest.approx(outcome.mean, rel=0.07)


def squared_variation(spread: float) -> float:
    """The squared coefficient of variation of a lognormal factor."""
    return float(2.718281828459045 ** (spread * spread) - 1)


@pytest.mark.parametrize("threads", [5, *(pytest.param(threads, marks=ANOTHER) for threads in (2, 10))])
def test_several_slots_wait_as_a_line_with_several_servers(threads: int) -> None:
    """M/D/c, with nearly a shard for each id: the mean wait is within 3 % of the recursion of Kiefer and Wolfowitz."""
    trace = Trace.of_rates([80.0 * threads] * 2, ids=400_000)

    outcome = simulate(trace, Times(fixed=0.010), other(shards=10_000, threads=threads))

    assert mean_wait(trace, 0.010, threads) == pytest.approx(outcome.mean, rel=0.03)


@pytest.mark.parametrize("batch", [1, 5, 50])
def test_batches_wait_as_a_server_that_takes_several(batch: int) -> None:
    """M/D/1 with batches: a call takes all that wait, up to the batch."""
    trace = Trace.of_rates([9.0 * min(batch, 20)] * 3, ids=100_000)

    outcome = simulate(trace, Times(fixed=0.100), other(batch=batch))

    assert mean_wait_in_batches(trace, 0.100, batch) == pytest.approx(outcome.mean, rel=0.03)


def test_fewer_threads_never_wait_less() -> None:
    """On the same trace a queue of ten shards waits longer with each thread that is taken away."""
    lags = p95s([Choice(shards=10, threads=threads) for threads in (10, 5, 3, 2, 1)])

    assert sorted(lags) == lags


def test_fewer_shards_never_wait_less() -> None:
    """On the same trace, with as many threads as there are shards at most."""
    lags = p95s([Choice(shards=shards, threads=40) for shards in (40, 20, 10, 5, 2)])

    assert sorted(lags) == lags


def test_a_smaller_processor_never_waits_less() -> None:
    """On the same trace, with a handler that computes."""
    times = msgspec.structs.replace(TIMES, computing=0.5)
    lags = [simulate(BURST, times, Choice(shards=10, threads=10, cores=cores)).p95 for cores in (1.0, 0.5, 0.25)]

    assert sorted(lags) == lags


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("compute", get_args(Compute))
def test_each_job_that_comes_in_goes_out(compute: Compute, concurrency: int) -> None:
    """Each payload begins once, whatever the compute, also where ids fail, limits hold and an outage lies between."""
    choice = Choice(
        compute=compute,
        concurrency=concurrency,
        failures=0.05,
        retry_in=2.0,
        max_running=4,
        rate=200.0,
        outages=((60.0, 80.0),),
        payloads_at_once=2,
    )

    outcome = simulate(BURST, TIMES, choice)

    assert (BURST.jobs, 0) == (outcome.jobs, outcome.depth[-1] if len(outcome.depth) > 90 else 0)
    assert outcome.calls > 0.5 * outcome.jobs


def test_more_ids_never_lower_the_calls() -> None:
    """Fewer ids merge more."""
    traces = [Trace.of_rates([100.0] * 2, ids=ids) for ids in (1, 10, 100, 1_000, 10_000)]
    calls = [simulate(trace, TIMES, Choice(compute="minute")).calls for trace in traces]

    assert sorted(calls) == calls


@pytest.mark.parametrize("compute", ["daemon", "wake"])
def test_the_same_seed_gives_the_same_bytes(compute: Compute) -> None:
    """Nothing of a run hangs on anything but its arguments."""
    texts = [msgspec.json.encode(simulate(BURST, TIMES, Choice(compute=compute), seed=7)) for _ in range(2)]

    assert texts[0] == texts[1]
    assert msgspec.json.decode(texts[0], type=Outcome).jobs == BURST.jobs


def test_shards_that_wait_alike_are_served_in_the_same_order_each_time() -> None:
    """Ids that run again wait for nothing, so that ties are common: where objects lie in memory breaks none of them."""
    choice = Choice(shards=12, threads=2, batch=7, compute="minute", failures=0.1, retry_in=2.0)
    kept, texts = list[list[object]](), set[bytes]()
    for size in range(0, 100, 20):
        kept.append([object() for _ in range(size)])
        texts.add(msgspec.json.encode(simulate(BURST, TIMES, choice)))

    assert 1 == len(texts)


@pytest.mark.parametrize("tenants", ["none", "spread"])
def test_a_shard_whose_id_runs_again_waits_since_its_rest_is_over(tenants: Any) -> None:
    """As in the engine, where its score is that time: shards that have waited longer go first."""
    trace = Trace.of_rows([(0.0, "a:1", 1), (0.5, "b:1", 1)])
    state = SimulatedQueue(trace, TIMES, Choice(shards=2, failures=0.1, tenants=tenants), 1)
    failing = SimulatedFailures(state)
    state.begin([0], 0.0)
    failing.fail(1.0, [(0, 1)])
    at, _, act, what = state.events[0]
    act(at, what)

    assert 16.0 == at == state.head(state.shard_of[0])


def test_a_limit_of_calls_keeps_the_others_waiting() -> None:
    """With two calls at once, ten shards do the work of two."""
    free, limited = (
        simulate(BURST, Times(fixed=0.1), Choice(shards=10, threads=10, max_running=most)) for most in (0, 2)
    )

    assert free.p95 < 0.2
    assert limited.p95 > 1.0
    assert limited.calls * 0.1 / 2 <= limited.end


def test_a_limit_of_visits_leaves_each_its_calls_side_by_side() -> None:
    """Two visits of five calls each do the work of ten calls at once, as in a drain."""
    times = Times(fixed=0.1)
    apart, together = (
        simulate(BURST, times, Choice(shards=10, threads=10, max_running=most, concurrency=concurrency))
        for most, concurrency in ((10, 1), (2, 5))
    )

    assert together.p95 < 1.0
    assert together.end == pytest.approx(apart.end, rel=0.2)


def test_a_rate_sets_the_pace() -> None:
    """With 20 ids a second all of the trace takes a twentieth of a second for each."""
    outcome = simulate(BURST, Times(fixed=0.001), Choice(rate=20.0))

    assert outcome.runs / 20 == pytest.approx(outcome.end, rel=0.05)


@pytest.mark.parametrize("concurrency", [1, 5])
def test_what_a_rate_allows_in_its_time_may_begin_at_once(concurrency: int) -> None:
    """Of thirty ids at once ten begin, ten a minute later, and ten after two: so many in any minute."""
    trace = Trace.of_rows((0.0, number, 1) for number in range(30))
    choice = Choice(rate=10 / 60, rate_per=60.0, concurrency=concurrency)
    outcome = simulate(trace, Times(fixed=0.001), choice)

    assert (0.0, 60.0, 120.0) == tuple(round(seconds, 1) for seconds in (*outcome.lag[:2], outcome.lag[2]))
    assert 60.0 == pytest.approx(outcome.mean, abs=0.5)


def test_what_is_pushed_in_an_outage_waits_for_its_end() -> None:
    """The longest wait is as long as the outage, and a little longer than it where much has come together."""
    outcome = simulate(BURST, Times(fixed=0.001), Choice(outages=((60.0, 90.0),)))

    assert 30 == pytest.approx(outcome.most, abs=1)


def test_an_invocation_is_billed_for_what_it_does() -> None:
    """With a schedule a minute that is the seconds of the calls, and a little for each invocation."""
    outcome = simulate(BURST, Times(fixed=0.02), Choice(compute="minute", shards=1))

    assert outcome.seconds < outcome.billed < outcome.seconds * 1.1 + 1.1 * outcome.invocations
    assert 3 <= outcome.invocations <= 5


@pytest.mark.parametrize("compute", ["minute", "shards", "wake"])
def test_an_hour_of_a_load_is_billed_as_ten_minutes_of_it(compute: Compute) -> None:
    """Environments start cold at the begin alone, and that is billed for no month."""
    short, long = (
        simulate(Trace.of_rates([1.0] * minutes, ids=10_000), Times(fixed=0.05), Choice(compute=compute))
        for minutes in (10, 60)
    )

    assert long.billed / 60 == pytest.approx(short.billed / 10, rel=0.1)


def test_parts_of_a_trace_are_as_late_as_the_whole_for_invocations_that_listen() -> None:
    """A part begins in the middle of a day: somebody listens already, and no invocation is billed behind its end."""
    trace = Trace.of_rates([10.0] * 120, ids=2_000)
    choice = Choice(shards=5, threads=5, compute="linger", timeout=57.0)

    whole, part = (simulate(each, Times(fixed=0.05), choice) for each in (trace, trace.between(3_000, 3_180)))

    assert 0.5 > abs(whole.p95 - part.p95)
    assert whole.billed / 7_200 == pytest.approx(part.billed / 180, rel=0.01)
