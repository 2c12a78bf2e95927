"""Limits of a queue that are set at run time: what counts, which shards know, and what is told of it."""

from functools import partial
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import BackendUnavailable, DeclarationError, Lowkiq, Rate
from lowkiq_lambda.store.shard.keys import QueueRef
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.limits import LimitsView, PermitView, WaitView
from tests.kit.apps import MakeApp
from tests.kit.handlers import FailingHandler
from tests.kit.permits import come, visit_permit
from tests.kit.servers import Server
from tests.kit.workers import declare

HANDLER = FailingHandler()


@pytest.fixture
def limited(app: Lowkiq, queue_name: str) -> Any:
    """A worker of four shards, two at once, ten ids a minute."""
    return declare(app, queue_name, HANDLER, shards_count=4, max_running=2, rate=Rate(10, per=60))


def counting(app: Lowkiq, worker: Any) -> tuple[int | None, Rate | None, bool]:
    """The limits that count, and whether an operator set any."""
    view = app.operate(worker).limits.explain()
    return view.max_running, view.rate, view.is_set


def marked(app: Lowkiq, worker: Any, server: Server) -> list[int]:
    """The shards in which it is noted that visits need a permit."""
    shards = app.core.queues.agreed(worker).shards
    return [shard.index for shard in shards if server.admin.hexists(shard.key("meta"), "limited")]


def test_x35_explain_tells_who_has_the_permits(app: Lowkiq, limited: Any, clock: ManualClock, queue_name: str) -> None:
    """X-35: limits, holders with shard and end, the wait list, ids left and the next moment, of one moment."""
    waiting = declare(app, f"{queue_name}-waiting", HANDLER, waits_for=(queue_name,))
    come(app, limited, 1, 3, 0, 2, want=4)

    view = app.operate(limited).limits.explain()

    now = pytest.approx(clock.time())
    ends = pytest.approx(clock.time() + 30)
    shown = msgspec.structs.replace(view, at=now, permits=[PermitView(1, ends), PermitView(3, ends)])  # type: ignore[arg-type]  # stands for a time
    assert list(view.permits) == shown.permits
    assert shown == LimitsView(
        queue_name=queue_name,
        at=now,  # type: ignore[arg-type]  # stands for a time
        max_running=2,
        rate=Rate(10, per=60),
        is_set=False,
        permits=shown.permits,
        wait_list=(0, 2),
        ids_left=2,
    )
    assert str(view).startswith(f"{queue_name}: 2 of 2 permits are taken (shard 1 until 30.0 s from now, ")
    assert "2 of 10 ids in 60 s may begin now. On the wait list: shards 0, 2." in str(view)
    blocked = app.operate(waiting).limits.explain()
    assert [WaitView(queue_name, 2)] == blocked.blocking
    assert f"waits for {queue_name}, of which 2 shards are visited now." in str(blocked)
    assert blocked.is_limited


def test_explain_tells_when_the_next_id_may_begin(app: Lowkiq, limited: Any, clock: ManualClock) -> None:
    """Where none may now; and to which shards a free permit is offered."""
    first = visit_permit(app, limited, 0)
    first.enter(6, 3_600.0, 0.0)
    come(app, limited, 1, want=3)
    come(app, limited, 2)
    first.leave(0.0, 0.0)

    view = app.operate(limited).limits.explain()

    assert ((2,), (), [1]) == (view.offered, view.wait_list, [permit.shard for permit in view.permits])
    assert "A permit was just offered to shard 2." in str(view)
    come(app, limited, 2, want=6)
    view = app.operate(limited).limits.explain()
    assert 0 == view.ids_left
    assert pytest.approx(clock.time() + 61, abs=1) == view.next_id_at


def test_a_queue_without_limits_says_so(app: Lowkiq, queue_name: str) -> None:
    """Nothing keeps its visits from beginning."""
    worker = declare(app, queue_name, HANDLER)
    view = app.operate(worker).limits.explain()

    assert f"{queue_name} has no limits." == str(view)
    assert (False, [], (), ()) == (view.is_limited, view.blocking, view.permits, view.undone)


def test_x30_what_is_set_comes_before_the_code(app: Lowkiq, limited: Any, server: Server) -> None:
    """X-30: what is not named stays as it was, None is no limit, and a reset gives the code its say again."""
    limits = app.operate(limited).limits
    limits.set(max_running=1)
    assert (1, Rate(10, per=60), True) == counting(app, limited)
    limits.set(rate=None)
    assert (1, None, True) == counting(app, limited)
    limits.set(max_running=None, rate=Rate(7, per=0.5))
    assert (None, Rate(7, per=0.5), True) == counting(app, limited)
    assert [0, 1, 2, 3] == marked(app, limited, server)
    limits.reset()
    limits.reset()
    assert (2, Rate(10, per=60), False) == counting(app, limited)
    assert [] == marked(app, limited, server)


def test_what_is_set_counts_for_visits_at_once(app: Lowkiq, limited: Any) -> None:
    """X-30: a lower limit lets nobody in while more have permits; a higher one does at once."""
    limits = app.operate(limited).limits
    come(app, limited, 0, 1)
    limits.set(max_running=1)
    (refused,) = come(app, limited, 2)
    assert hasattr(refused, "seconds")
    assert "2 of 1 permits are taken" in str(limits.explain())
    limits.set(max_running=3)
    (admitted,) = come(app, limited, 2, want=2)
    assert 2 == getattr(admitted, "ids", None)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"max_running": 0}, "max_running must not be 0, which would let nothing run: pause the queue for that."),
        ({"max_running": "3"}, "max_running must be a whole number from 1 to 100,000, not '3'."),
        ({"rate": 5}, "rate must be a Rate, as in Rate(100, per=60), not 5."),
    ],
)
def test_what_is_no_limit_is_refused(app: Lowkiq, limited: Any, given: dict[str, Any], why: str) -> None:
    """As in a declaration, before anything is written."""
    with pytest.raises(DeclarationError) as raised:
        app.operate(limited).limits.set(**given)

    assert why == str(raised.value)
    assert not app.operate(limited).limits.explain().is_set
    with pytest.raises(ValueError, match="set takes max_running, rate, or both"):
        app.operate(limited).limits.set()


class BreaksOff:
    """Lets so many calls of scripts of shards through, and none after these."""

    def __init__(self, app: Lowkiq, reached: int) -> None:
        self._run = app.core.backend.run
        self._left = reached

    def __call__(self, *args: Any, **options: Any) -> Any:
        """In place of the backend's `run`."""
        self._left -= 1
        if self._left < 0:
            raise BackendUnavailable
        return self._run(*args, **options)


@pytest.mark.parametrize("act", ["set", "reset"])
@pytest.mark.parametrize("reached", range(4))
def test_x30_a_change_that_breaks_off_is_told_and_made_again(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch, reached: int, act: str
) -> None:
    """X-30: wherever it breaks off between two shards, the error and `explain` say which it has not reached."""
    worker = declare(app, queue_name, HANDLER, shards_count=4)
    limits = app.operate(worker).limits
    if act == "reset":
        limits.set(max_running=2)
    change = partial(limits.set, max_running=2) if act == "set" else limits.reset
    with monkeypatch.context() as patch:
        patch.setattr(app.core.backend, "run", BreaksOff(app, reached))
        with pytest.raises(BackendUnavailable) as raised:
            change()

    assert [f"The change counts in {reached} of 4 shards: make it again to go on."] == raised.value.__notes__
    assert [*range(reached, 4)] == [*limits.explain().undone]
    assert "make it again" in str(limits.explain())
    change()
    assert ((), act == "set") == (limits.explain().undone, limits.explain().is_set)


def test_x30_a_late_call_undoes_no_later_change(app: Lowkiq, limited: Any, server: Server) -> None:
    """X-30: a reset that was on its way while limits were set again takes no mark away."""
    limits = app.operate(limited).limits
    limits.set(max_running=1)
    limits.reset()
    limits.set(max_running=3)
    for shard in app.core.queues.agreed(limited).shards:
        app.core.backend.run("mark_limited", shard, [2, ""], retry_for=0.0)

    assert [0, 1, 2, 3] == marked(app, limited, server)


def test_x30_limits_stay_where_a_queue_is_declared_anew(make_app: MakeApp, queue_name: str, server: Server) -> None:
    """X-30: its new shards know of them."""
    old, new = make_app(), make_app()
    before = declare(old, queue_name, HANDLER, shards_count=2)
    old.operate(before).limits.set(max_running=1)
    worker = declare(new, queue_name, HANDLER, shards_count=3)
    new.operate(worker).redeclare()

    assert [0, 1, 2] == marked(new, worker, server)
    assert () == new.operate(worker).limits.explain().undone


@pytest.mark.parametrize("damaged", [b"", b"\xff", b"\x01", b"\xc1nonsense"])
def test_limits_that_cannot_be_read_count_as_not_set(
    app: Lowkiq, limited: Any, server: Server, queue_name: str, damaged: bytes
) -> None:
    """The code's count; and limits may be set again."""
    server.admin.hset(QueueRef(queue_name).key("limits"), "set", damaged)
    assert (2, Rate(10, per=60), False) == counting(app, limited)
    app.operate(limited).limits.set(max_running=5)

    assert (5, Rate(10, per=60), True) == counting(app, limited)


def test_a_damaged_mark_is_a_mark(app: Lowkiq, limited: Any, server: Server) -> None:
    """Where nobody can read it, visits ask rather than that limits are not kept."""
    (shard, *_) = app.core.queues.agreed(limited).shards
    server.admin.hset(shard.key("meta"), "limited", "nonsense")
    limits = app.operate(limited).limits
    limits.set(max_running=1)
    limits.reset()

    assert [] == marked(app, limited, server)
