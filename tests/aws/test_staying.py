"""A drain stays for what becomes due within seconds, and costs nothing where nothing does."""

from typing import Any

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction
from tests.kit.apps import MakeApp, close_app
from tests.kit.handlers import Broken, Notes
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of, shard_of


class Staying:
    """A drain function whose only worker notes what it performs, and how long an invocation takes."""

    def __init__(self, drain: DrainFunction, app: Lowkiq, clock: Clock, queue_name: str) -> None:
        self.app = app
        self.clock = clock
        self.notes = Notes()
        self._drain = drain
        self._queue_name = queue_name

    def declare(self, fails: int = 0, retry_in: float = 600.0, **fields: Any) -> type[Worker]:
        """The worker; its first so many batches fail, and are tried again after so many seconds."""

        def then(_batch: Batch) -> None:
            if len(self.notes.batches) <= fails:
                raise Broken

        self.notes.then = then
        return declare(self.app, self._queue_name, self.notes, retry_in=lambda _self, _retry_count: retry_in, **fields)

    def __call__(self, *, seconds: float = 63.0, **settings: Any) -> tuple[dict[str, Any], float]:
        """What an invocation answers that has so many seconds, of which three are kept back; and how long it took."""
        self._drain.install(self.app, **settings)
        began_at = self.clock.monotonic()
        return self._drain(seconds=seconds), self.clock.monotonic() - began_at


@pytest.fixture
def staying(drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str) -> Staying:
    """One whose time passes only in waits."""
    return Staying(drain, make_app(), clock, queue_name)


def test_a_retry_that_is_due_in_a_second_is_made_by_the_same_invocation(
    drain: DrainFunction, server_url: str, queue_name: str
) -> None:
    """By the real clock: it is performed when it is due, and not a minute later."""
    app = Lowkiq(Config(redis_url=server_url))
    staying = Staying(drain, app, SystemClock(), queue_name)
    staying.declare(fails=1, retry_in=1.0).push_many(jobs_of("a"))

    told, took = staying()

    assert {"failed": 1, "retried": 1, "done": 1} == told["counts"]
    assert 1.0 <= took < 10.0
    close_app(app)


@pytest.mark.parametrize(
    ("due_in", "settings", "waited"),
    [
        (1.9, {}, 1.9),
        (2.1, {}, 0.0),
        (600.0, {}, 0.0),
        (1.9, {"idle": "end"}, 0.0),
        (1.9, {"idle": "start"}, 1.9),
    ],
)
def test_only_what_is_due_within_the_setting_is_waited_for(
    staying: Staying, due_in: float, settings: dict[str, Any], waited: float
) -> None:
    """Two seconds by default; where nothing is due within them, not a moment is billed."""
    staying.declare().push_many(jobs_of("a", delay=due_in))

    told, took = staying(**settings)

    assert "empty" == told["reason"]
    assert ([["a"]] if waited else []) == staying.notes.ids
    assert waited == pytest.approx(took, abs=0.01)


def test_an_idle_drain_looks_once(staying: Staying, monkeypatch: pytest.MonkeyPatch) -> None:
    """P8: when the next job is due was told by the look, so nobody asks again."""
    staying.declare().push_many(jobs_of("a", delay=600))
    probes: list[object] = []
    probe_each = staying.app.core.drains.drainer.probe_each

    def noted(*args: Any, **options: Any) -> Any:
        probes.append(args)
        return probe_each(*args, **options)

    monkeypatch.setattr(staying.app.core.drains.drainer, "probe_each", noted)
    staying()

    assert 1 == len(probes)


def test_p5_no_wait_goes_on_after_the_budget(staying: Staying) -> None:
    """P5: what is due when there is no more time for it is left to the next invocation, and not waited for."""
    staying.declare().push_many(jobs_of("a", delay=1.5))

    _, took = staying(seconds=3.0 + 1.0)

    assert ([], 0.0) == (staying.notes.ids, took)


def test_a_job_that_fails_each_second_is_not_stayed_for_for_ever(staying: Staying) -> None:
    """The waits of an invocation are bounded in sum."""
    staying.declare(fails=1_000, retry_in=0.5, max_retry_count=1_000).push_many(jobs_of("a"))

    _, took = staying()

    assert 4 == len(staying.notes.ids)
    assert 1.5 == pytest.approx(took, abs=0.01)


@pytest.mark.parametrize(("obstacle", "field"), [("held", "until"), ("paused", "paused_until")])
def test_a_shard_that_somebody_else_has_is_not_waited_for(
    staying: Staying, server: Server, obstacle: str, field: str
) -> None:
    """When a lease or a pause ends is not when the work can be had."""
    worker = staying.declare()
    worker.push_many(jobs_of("a"))
    server.admin.hset(shard_of(staying.app, worker, "a").key("meta"), field, staying.clock.time() + 1.0)

    told, took = staying()

    assert (obstacle, 0.0) == (told["reason"], took)


def test_p1_others_may_drain_the_shard_while_an_invocation_stays_for_it(
    staying: Staying, make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: an invocation that waits has no lease: what is pushed meanwhile another process performs, and it the rest."""
    worker = staying.declare(shards_count=1)
    others, notes = make_app(), Notes()
    declare(others, queue_name, notes, shards_count=1)
    worker.push_many([*jobs_of("c"), *jobs_of("a", delay=1.5)])
    sleep = clock.sleep

    def slept(seconds: float) -> None:
        if not notes.ids:
            worker.push_many(jobs_of("b"))
            others.drain(1.0)
        sleep(seconds)

    monkeypatch.setattr(clock, "sleep", slept)
    told, _ = staying()

    assert ([["b"]], [["c"], ["a"]]) == (notes.ids, staying.notes.ids)
    assert {"done": 2} == told["counts"]
