"""The three lists of `app.operate(worker)`, and the acts on them: by ids, by a filter, or on everything."""

from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Config, DeclarationError, Lowkiq
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.operate.queue_parts import StoredQueue
from tests.kit.desk import Desk, MakeDesk
from tests.kit.handlers import Notes
from tests.kit.looks import ids_of
from tests.kit.workers import declare, jobs_of

ACTS: dict[str, tuple[Callable[[QueueOperations], Callable[..., object]], dict[str, Any]]] = {
    "waiting.delete": (lambda queue: queue.waiting.delete, {}),
    "waiting.run_now": (lambda queue: queue.waiting.run_now, {}),
    "waiting.kill": (lambda queue: queue.waiting.kill, {}),
    "waiting.kill with an error": (lambda queue: queue.waiting.kill, {"error": "enough"}),
    "morgue.requeue": (lambda queue: queue.morgue.requeue, {}),
    "morgue.requeue at a rate": (lambda queue: queue.morgue.requeue, {"rate": 5.0}),
    "morgue.delete": (lambda queue: queue.morgue.delete, {}),
    "unblock": (lambda queue: queue.unblock, {"how": "retry"}),
}
"""Each act, and what it is given besides its ids. Each changes the ids of `filled` that begin with the letter."""


def filled(make_desk: MakeDesk) -> Desk:
    """Of each kind three ids: blocked, dead, failed, and such as wait for a later time."""
    desk = make_desk({"shards_count": 2, "dead_head": "block", "max_retry_count": 1})
    desk.kill([{"id": f"d{number}"} for number in range(3)])
    desk.push([{"id": f"b{number}", "payload": part, "score": part} for number in range(3) for part in range(2)])
    desk.handler.failing = {"b0", "b1", "b2"}
    for _ in range(2):
        desk.drain()
        desk.clock.advance(3_600.0)
    desk.fail([{"id": f"f{number}"} for number in range(3)])
    desk.push([{"id": f"l{number}", "delay": 500.0} for number in range(3)])
    return desk


LETTERS = {"waiting.delete": "f", "waiting.run_now": "l", "waiting.kill": "f", "waiting.kill with an error": "l"}
LETTERS |= {"morgue.requeue": "d", "morgue.requeue at a rate": "d", "morgue.delete": "d", "unblock": "b"}


@pytest.mark.parametrize("name", ACTS)
def test_an_act_is_on_ids_or_on_those_of_a_filter(make_desk: MakeDesk, name: str) -> None:
    """Both change what they name, and nothing more; a second call changes nothing."""
    desk, letter = filled(make_desk), LETTERS[name]
    find, given = ACTS[name]
    act = find(desk.queue)

    assert 1 == act([f"{letter}0", "unknown"], **given)
    assert 2 == act(filter={"prefix": letter}, **given)
    assert 0 == act(filter={"prefix": letter}, **given)


@pytest.mark.parametrize("name", ACTS)
def test_an_act_is_on_everything_that_it_can_change(make_desk: MakeDesk, name: str) -> None:
    """All that it could change by its ids is changed, and somebody has said so in so many words."""
    desk = filled(make_desk)
    find, given = ACTS[name]
    everything = {"waiting.delete": 9, "waiting.run_now": 6, "waiting.kill": 3, "waiting.kill with an error": 6}
    # Blocked ids have failed, and are killed with what they have.
    everything["waiting.kill"] = 6

    assert everything.get(name, 3) == find(desk.queue)(everything=True, **given)
    assert 0 == find(desk.queue)(everything=True, **given)


@pytest.mark.parametrize("name", ACTS)
def test_an_act_takes_exactly_one_choice(desk: Desk, name: str) -> None:
    """Whoever names nothing, or two things, is told what to give, and nothing is changed."""
    find, given = ACTS[name]
    act = find(desk.queue)

    choices: list[tuple[dict[str, Any], str]] = [
        ({}, "none of them"),
        ({"everything": False}, "none of them"),
        ({"ids": ["a"], "filter": {}}, "2 of them: ids and a filter"),
        ({"ids": [], "everything": True}, "2 of them: ids and everything=True"),
        ({"filter": {}, "everything": True}, "2 of them: a filter and everything=True"),
    ]
    for choice, told in choices:
        with pytest.raises(ValueError, match=f"Give exactly one of ids, .* The call has {told}"):
            act(**choice, **given)
    with pytest.raises(ValueError, match="The filter cannot work"):
        act(filter={"colour": "red"}, **given)
    with pytest.raises(TypeError, match="ids are given as a list"):
        act("abc", **given)


def test_what_waits_is_not_deleted_by_an_empty_filter(make_desk: MakeDesk) -> None:
    """A filter that was meant to narrow, and does not, empties no queue."""
    desk = filled(make_desk)

    with pytest.raises(ValueError, match="would delete every waiting job"):
        desk.queue.waiting.delete(filter={"least": "-inf"})

    assert 9 == desk.queue.waiting.count()


def test_a_deletion_of_failed_ids_spares_one_that_was_done_meanwhile(desk: Desk) -> None:
    """Between the filter and the script an id may have been done, and pushed to again."""
    desk.fail([{"id": "a"}])

    def done_meanwhile() -> None:
        desk.clock.advance(3_600.0)
        desk.drain()
        desk.push([{"id": "a", "payload": "new"}])

    desk.before("delete", done_meanwhile)

    assert 0 == desk.queue.waiting.delete(filter={"least_count": "0"})
    assert ["a"] == ids_of(desk.queue.waiting.fetch(["a"]))


def test_lists_are_counted(make_desk: MakeDesk) -> None:
    """All of a list, or what a filter wants of it."""
    desk = filled(make_desk)
    in_flight: list[int] = []
    desk.handler.meanwhile = lambda: in_flight.append(desk.queue.in_flight.count())
    desk.push([{"id": "runs"}])
    desk.drain()
    waiting, morgue = desk.queue.waiting, desk.queue.morgue

    assert ([1], 0) == (in_flight, desk.queue.in_flight.count())
    assert (9, 3, 3) == (waiting.count(), waiting.count({"prefix": "l"}), waiting.count({"error": "f"}))
    assert (3, 1, 0) == (morgue.count(), morgue.count({"prefix": "d1"}), morgue.count({"prefix": "f"}))


def test_a_list_is_narrowed_by_a_filter(make_desk: MakeDesk) -> None:
    """In the order of time, which alone a filter goes with."""
    desk = filled(make_desk)
    waiting, morgue = desk.queue.waiting, desk.queue.morgue

    assert {"l0", "l1", "l2"} == set(ids_of(waiting.list(filter={"prefix": "l"})))
    assert ["d2"] == ids_of(morgue.list(filter={"least_id": "(d1"}))
    narrowed: list[tuple[Callable[..., object], dict[str, Any]]] = [
        (waiting.list, {"by": "id"}),
        (waiting.list, {"min": 5}),
        (morgue.list, {"by": "id"}),
        (morgue.list, {"max": 5}),
    ]
    for listed, given in narrowed:
        with pytest.raises(ValueError, match=r"With a filter a list is by \w+, and its bounds are"):
            listed(filter={"prefix": "l"}, **given)


def test_an_order_that_a_list_has_not_is_refused(desk: Desk) -> None:
    """With those that it has."""
    odd: Any = "size"

    with pytest.raises(ValueError, match="by must be one of 'due_at', 'retry_count', 'id', not 'size'"):
        desk.queue.waiting.list(odd)
    with pytest.raises(ValueError, match="by must be one of 'updated_at', 'id', not 'size'"):
        desk.queue.morgue.list(odd)


def test_blocked_ids_go_on_by_a_filter_of_their_own(make_desk: MakeDesk) -> None:
    """`unblock` looks at blocked ids alone, whatever else the filter would fit."""
    desk = filled(make_desk)
    desk.handler.failing = set()

    assert ["b0", "b1", "b2"] == sorted(ids_of(desk.queue.waiting.blocked()))
    assert 1 == desk.queue.unblock(how="skip", filter={"least_id": "(b1"})
    assert 2 == desk.queue.unblock(everything=True)
    assert [] == desk.queue.waiting.blocked()
    assert ["b2"] == ids_of(desk.queue.morgue.list(filter={"prefix": "b"}))
    odd: Any = "drop"
    with pytest.raises(ValueError, match="how must be"):
        desk.queue.unblock(["b0"], odd)


def test_a_glimpse_shows_the_first_payload(desk: Desk) -> None:
    """In each list; what it changes is the same."""
    desk.push([{"id": "a", "payload": number, "score": number} for number in range(3)])
    (job,) = desk.queue.glimpse().waiting.list()

    assert (1, 2) == (len(job.payloads), job.more_payloads)
    assert 1 == desk.queue.glimpse().waiting.delete(["a"])


def test_whoever_waits_for_an_answer_can_have_it_sooner(desk: Desk) -> None:
    """`retrying` makes the time shorter, and never longer."""
    longer = desk.app.config.redis_retry_for + 1.0

    assert 0.5 == desk.queue.retrying(0.5).reader.retry_for
    assert desk.app.config.redis_retry_for == desk.queue.retrying(longer).reader.retry_for
    assert 0.5 == desk.queue.retrying(0.5).glimpse().runner.reader.retry_for


def test_no_call_is_made_before_something_is_asked(queue_name: str) -> None:
    """So `redeclare` and `reshard` are reached for a queue that was made otherwise; a foreign worker is refused."""
    app = Lowkiq(Config(redis_url="redis://127.0.0.1:1/0"))
    app.operate(declare(app, queue_name, Notes()))

    with pytest.raises(DeclarationError, match="is not a worker of this app"):
        app.operate(declare(Lowkiq(), f"{queue_name}-2", Notes()))


def test_a_queue_without_a_worker_has_no_limits_to_set(app: Lowkiq, queue_name: str) -> None:
    """The command line sees a queue that the app has no worker for: what the code would declare is unknown."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a"))
    queue = app.operate(worker)
    bare = QueueOperations(app.core, None, lambda: StoredQueue(queue.reader.shards, "min"))

    assert 1 == bare.waiting.count()
    with pytest.raises(TypeError, match="no worker for this queue"):
        _ = bare.limits
