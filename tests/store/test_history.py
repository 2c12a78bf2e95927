"""What became of ids, in slots of time: written by those who drain, read for charts."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.store.shard.history import BUCKETS, DAYS, MINUTES, SECONDS, TIMES, Recorder, bounds, bucket
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.queues import Between, QueueHistory, QueueOverview, Series, Span
from tests.kit.apps import MakeApp, close_app
from tests.kit.handlers import FailingHandler
from tests.kit.servers import Cluster, FaultProxy, Server
from tests.kit.workers import declare


@pytest.fixture
def recorder(app: Lowkiq) -> Recorder:
    """One that writes when it is told to."""
    return Recorder(app.core.backend)


def settled(
    queue_name: str, at: float, counts: Mapping[str, int], took: Sequence[float], waited: Sequence[float]
) -> SettledEvent:
    """One settling of the queue's first shard."""
    return SettledEvent(queue_name=queue_name, shard=0, token=1, at=at, counts=counts, took=took, waited=waited)


def only(queues: Iterable[QueueOverview]) -> QueueOverview:
    """The queue of an app that has one."""
    (queue,) = queues
    return queue


def history_of(app: Lowkiq, span: Span | Between = "10m") -> QueueHistory:
    """The past of the app's only queue."""
    with app.operate.overview(span) as seen:
        return only(seen.queues).history


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 0.001, 0.0011, 0.5, 59.0, 86_400.0, 3e6])
def test_a_time_lies_within_the_bounds_of_its_bucket(seconds: float) -> None:
    """What is told of a time is right to a quarter."""
    lower, upper = bounds(bucket(seconds))

    assert lower <= seconds <= upper * (1 + 1e-9)
    assert bucket(seconds) == 0 or upper <= 1.26 * lower


def test_nothing_is_too_long_or_too_odd_for_a_bucket() -> None:
    """Years, and times from clocks that were set back, have their place too."""
    assert BUCKETS - 1 == bucket(1e12)
    assert 0 == bucket(-5.0)


def test_quantiles_are_those_of_what_was_measured(
    app: Lowkiq, recorder: Recorder, queue_name: str, clock: ManualClock
) -> None:
    """The median and the 95th of a hundred, whether they ran in many settlings or in one."""
    declare(app, queue_name, FailingHandler())
    times = [Random(3).lognormvariate(0, 1) for _ in range(2_000)]
    for time in times:
        recorder.note(settled(queue_name, clock.time(), {"done": 1}, [time], [2 * time]))
    recorder.flush()
    past, ordered = history_of(app), sorted(times)

    assert past.took is not None
    assert past.waited is not None
    assert past.took.p50 == pytest.approx(ordered[1_000], rel=0.1)
    assert past.took.p95 == pytest.approx(ordered[1_900], rel=0.1)
    assert past.waited.p50 == pytest.approx(2 * ordered[1_000], rel=0.1)


def test_of_many_batches_in_a_settling_a_few_stand_for_all(
    app: Lowkiq, recorder: Recorder, queue_name: str, clock: ManualClock
) -> None:
    """A thousand batches cost no more than eight, and weigh as a thousand."""
    declare(app, queue_name, FailingHandler())
    recorder.note(settled(queue_name, clock.time(), {"done": 1_000}, [0.01] * 1_000, [5.0] * 1_000))
    recorder.note(settled(queue_name, clock.time(), {"done": 100}, [1.0] * 100, []))
    recorder.flush()
    past = history_of(app)

    assert past.took is not None
    assert past.took.p50 == pytest.approx(0.01, rel=0.3)
    assert past.took.p95 == pytest.approx(1.0, rel=0.3)


def test_what_several_processes_write_is_added_up(
    make_app: MakeApp, app: Lowkiq, queue_name: str, clock: ManualClock
) -> None:
    """Each adds to the same slots."""
    declare(app, queue_name, FailingHandler())
    for count in (3, 4):
        other = Recorder(make_app().core.backend)
        other.note(settled(queue_name, clock.time(), {"done": count, "failed": 1}, [], []))
        other.flush()
    clock.advance(60)
    past = history_of(app)

    assert (7, 2) == (sum(past.series.ended), sum(past.series.failed))


def test_a_rate_is_that_of_the_last_half_minute(app: Lowkiq, queue_name: str, clock: ManualClock) -> None:
    """Sixty in the last thirty seconds are two in a second, and none a minute later."""
    declare(app, queue_name, FailingHandler())
    recorder = Recorder(app.core.backend)
    for _ in range(6):
        recorder.note(settled(queue_name, clock.time(), {"done": 10, "failed": 1}, [], []))
        clock.advance(5)
    recorder.flush()
    clock.advance(5)
    past = history_of(app)
    assert 2.0 == past.ended_rate
    assert 0.2 == pytest.approx(past.failed_rate)

    clock.advance(60)
    assert 0 == history_of(app).ended_rate


def check_points(series: Series, written: Mapping[int, int]) -> None:
    """Each point has what was written in its time."""
    for place, count in enumerate(series.ended):
        begin = series.began_at + place * series.step
        assert sum(n for at, n in written.items() if begin <= at < begin + series.step) == count


def test_every_point_lies_where_it_belongs(app: Lowkiq, queue_name: str, clock: ManualClock) -> None:
    """Whatever was written at any time is in the points of the right span, once, across the borders of windows."""
    declare(app, queue_name, FailingHandler())
    recorder, random = Recorder(app.core.backend), Random(5)
    written: Counter[int] = Counter()
    for _ in range(400):
        count = random.randrange(1, 9)
        written[int(clock.time())] += count
        recorder.note(settled(queue_name, clock.time(), {"done": count}, [], []))
        recorder.flush()
        clock.advance(random.choice([1, 7, 61, 1_000]))
    spans: tuple[Span, ...] = ("10m", "1h", "6h", "72h")
    for span in spans:
        series = history_of(app, span).series
        check_points(series, written)
        ends_at = series.began_at + series.step * len(series.ended)
        # What was written a minute ago is in it, however long its points are.
        assert clock.time() - MINUTES.step - 2 * SECONDS.step <= ends_at <= clock.time()


def test_a_range_has_what_was_written_in_it(app: Lowkiq, queue_name: str, clock: ManualClock) -> None:
    """All of it, once, whichever kind of slots has it; a slot that the range begins or ends in is there as a whole."""
    declare(app, queue_name, FailingHandler())
    recorder, random = Recorder(app.core.backend), Random(7)
    written: Counter[int] = Counter()
    for _ in range(300):
        written[int(clock.time())] += 1
        recorder.note(settled(queue_name, clock.time(), {"done": 1}, [], []))
        recorder.flush()
        clock.advance(random.choice([1, 7, 61, 1_600]))
    now = clock.time()
    for _ in range(40):
        since = now - random.choice([500, 5_000, 72 * 3_600]) * random.random()
        until = since + (now + 600 - since) * random.random() + 1
        series = history_of(app, Between(since, until)).series
        check_points(series, written)
        ends_at = series.began_at + series.step * len(series.ended)
        assert series.began_at <= since
        assert min(until, now - MINUTES.step - SECONDS.step) <= ends_at <= now
        assert len(series.ended) <= 300


@pytest.mark.parametrize(
    ("since", "until", "reason"),
    [
        (-60, -60, "must begin before it ends"),
        (-60, -120, "must begin before it ends"),
        (math.nan, 0, "must begin before it ends"),
        (60, 120, "in the future"),
        (-73 * 3_600, 0, "the history begins at .* UTC"),
        (-math.inf, math.inf, "the history begins at .* UTC"),
    ],
)
def test_a_range_without_a_history_is_refused(
    app: Lowkiq, clock: ManualClock, since: float, until: float, reason: str
) -> None:
    """Nothing is shown for a time of which nothing is kept: zeros there would be a lie."""
    now = clock.time()

    with pytest.raises(ValueError, match=reason):
        history_of(app, Between(now + since, now + until))


def test_a_range_of_kept_days_goes_back_to_them(make_app: MakeApp, queue_name: str, clock: ManualClock) -> None:
    """By the hour, or by more hours for a long one, as far as the settings keep days."""
    app = make_app(history_days=20)
    declare(app, queue_name, FailingHandler())
    recorder, at = Recorder(app.core.backend, 20), clock.time()
    recorder.note(settled(queue_name, at, {"done": 3}, [2.0], [1.0]))
    recorder.flush()
    clock.advance(10 * DAYS.window)

    for length, step in ((7_200, 3_600), (9 * DAYS.window, 3_600), (19 * DAYS.window, 6 * 3_600)):
        past = history_of(app, Between(at - length / 2, at + length / 2))
        assert (3, step) == (sum(past.series.ended), past.series.step)
        assert length <= DAYS.window or past.of_days is not None


def test_windows_go_by_themselves(app: Lowkiq, server: Server, queue_name: str, clock: ManualClock) -> None:
    """No key stays for ever, and none goes before its window was seen to its end."""
    declare(app, queue_name, FailingHandler())
    recorder = Recorder(app.core.backend)
    recorder.note(settled(queue_name, clock.time(), {"done": 1}, [1.0], [1.0]))
    recorder.flush()

    for kind, seen in ((SECONDS, 600), (MINUTES, 72 * 3_600), (TIMES, 1_800)):
        left = server.admin.ttl(kind.key(queue_name, clock.time()))
        assert kind.window + seen < left <= kind.kept


def test_a_slot_that_is_full_stays_full(app: Lowkiq, recorder: Recorder, queue_name: str, clock: ManualClock) -> None:
    """Four thousand million in five seconds are as many as can be told; nothing begins at zero again."""
    declare(app, queue_name, FailingHandler())
    for _ in range(2):
        recorder.note(settled(queue_name, clock.time(), {"done": 2**31 + 5}, [], []))
        recorder.flush()
    clock.advance(60)

    assert 2**32 - 1 == max(history_of(app).series.ended)


def test_a_drain_writes_what_it_did_without_a_call_more(
    app: Lowkiq, queue_name: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """History travels with calls that are made anyway; only what is left when the time is over goes by itself."""
    flushed: list[int] = []
    worker = declare(app, queue_name, FailingHandler())
    worker.push_many([{"id": n} for n in range(30)])
    monkeypatch.setattr("lowkiq_lambda.store.shard.history.send_each", lambda *_: flushed.append(1))

    app.drain()
    clock.advance(60)

    assert [] == flushed
    assert 30 == sum(history_of(app).series.ended)


def test_a_process_that_only_visits_writes_now_and_then(app: Lowkiq, queue_name: str, clock: ManualClock) -> None:
    """What a thread of a daemon did goes along with a later look, five seconds on."""
    worker = declare(app, queue_name, FailingHandler())
    worker.push_many([{"id": 1}])
    drainer = app.core.drains.drainer
    drainer.visit(drainer.shards()[0], Budget(clock))
    drainer.probe(drainer.shards())
    clock.advance(60)
    assert 0 == sum(history_of(app).series.ended)

    drainer.probe(drainer.shards())
    assert 1 == sum(history_of(app).series.ended)


def test_a_redis_that_is_away_costs_history_only(
    make_app: MakeApp,
    fault_proxy: FaultProxy,
    queue_name: str,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What cannot be written is dropped: nothing is raised or logged, and what comes later is written."""
    app = make_app(redis_url=fault_proxy.url, redis_timeout=0.2)
    declare(app, queue_name, FailingHandler())
    recorder = Recorder(app.core.backend)
    recorder.note(settled(queue_name, clock.time(), {"done": 1}, [], []))
    fault_proxy.refuse()
    fault_proxy.cut()

    recorder.flush()
    fault_proxy.heal()
    recorder.note(settled(queue_name, clock.time(), {"done": 20}, [], []))
    recorder.flush()
    clock.advance(60)

    assert 20 == sum(history_of(app).series.ended)
    assert [] == caplog.records


@pytest.fixture
def cluster_app(cluster: Cluster) -> Iterator[Lowkiq]:
    """An app on three nodes."""
    app = Lowkiq(Config(redis_url=cluster.url))
    yield app
    close_app(app)


def test_history_and_overview_work_in_a_cluster(cluster: Cluster, cluster_app: Lowkiq, queue_name: str) -> None:
    """Shards, history and declarations lie on several nodes; the overview has all of them, and each node's card."""
    worker = declare(cluster_app, queue_name, FailingHandler(), shards_count=12)
    worker.push_many([{"id": n} for n in range(200)])
    cluster_app.drain()
    with cluster_app.operate.overview("72h") as seen:
        queue = only(seen.queues)

    assert 200 == queue.now.done
    assert 3 == len(seen.servers)
    assert {"primary"} == {server.role for server in seen.servers}
    assert {f"{node.host}:{node.port}" for node in cluster.nodes} == {server.address for server in seen.servers}
    assert queue.history.took is not None
    assert math.isfinite(queue.history.took.p95)
    assert not queue.mismatched


def test_a_batch_has_waited_until_it_began(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: of two batches that are claimed at once the second has waited for the first, too."""
    handler = FailingHandler()
    worker = declare(app, queue_name, handler, batch_size=1)
    worker.push_many([{"id": "a"}])
    # A queue whose batches take no time is claimed many at a time.
    app.drain()
    worker.push_many([{"id": job_id, "due_at": clock.time()} for job_id in "bc"])
    clock.advance(5)
    handler.meanwhile = lambda: clock.advance(8)
    app.drain()
    app.core.drains.drainer.history.flush()
    waited = history_of(app).waited

    assert waited is not None
    assert [1, 1, 1] == [len(batch) for batch in handler.batches]
    assert pytest.approx(5, rel=0.25) == waited.p50
    assert pytest.approx(13, rel=0.25) == waited.p95


def test_days_have_their_own_percentiles(make_app: MakeApp, queue_name: str, clock: ManualClock) -> None:
    """With `history_days` each day has its sums and its times, and goes by itself; without it nothing is written."""
    app, none = make_app(history_days=30), make_app()
    for each in (app, none):
        declare(each, queue_name, FailingHandler())
    recorder, silent = Recorder(app.core.backend, 30), Recorder(none.core.backend)
    midnight = clock.time() // 86_400 * 86_400
    for day, took in ((0, 0.1), (1, 10.0)):
        for hour in (1, 23):
            at = midnight - 86_400 * day + 3_600 * hour
            recorder.note(settled(queue_name, at, {"done": 3, "failed": 1}, [took] * 20, [2 * took] * 20))
    recorder.flush()
    clock.advance(midnight + 86_390 - clock.time())

    past = history_of(app, "30d")

    assert [(midnight - 86_400, 6, 2), (midnight, 6, 2)] == [(day.at, day.ended, day.failed) for day in past.days]
    before, today = past.days
    assert before.took is not None
    assert today.took is not None
    assert today.waited is not None
    assert (10.0, 0.1, 0.2) == pytest.approx((before.took.p95, today.took.p95, today.waited.p95), rel=0.15)
    together = history_of(app, "72h").of_days
    assert together == past.of_days
    assert together is not None
    assert together.took is not None
    assert (midnight - 86_400, 12, 4) == (together.at, together.ended, together.failed)
    assert (0.1, 10.0) == pytest.approx((together.took.p50, together.took.p95), rel=0.3)
    assert 120 == len(past.series.ended)
    assert sum(past.series.ended) >= 9
    key = DAYS.key(queue_name, midnight)
    assert 960 >= app.core.backend.client.strlen(key)
    assert 30 * 86_400 < app.core.backend.client.ttl(key) <= 31 * 86_400
    app.core.backend.client.delete(key)
    silent.note(settled(queue_name, midnight, {"done": 1}, [1.0], [1.0]))
    silent.flush()
    assert 0 == app.core.backend.client.exists(key)
    assert ([], None) == (history_of(app).days, history_of(app).of_days)
