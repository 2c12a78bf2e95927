"""Entries that get another shard: by another id, or with their queue."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.store.shard.entries import EntryStore
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.firing import MINUTE, at_noon, fired, outcomes
from tests.kit.handlers import Notes
from tests.kit.workers import declare


def test_another_id_moves_the_entry(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It lies in the shard of its id, and in no other."""
    worker = declare(app, queue_name, Notes(), shards_count=8)
    at_noon(clock)
    for job_id in ("a", "b", "c", "d"):
        app.schedules.put("poll", worker, every=MINUTE, id=job_id)
    assert [("poll", "run time", "d")] == [
        (view.name, view.source, view.entry.id) for view in app.schedules.all() if view.entry
    ]
    clock.advance(60.0)
    assert [("poll", 60.0, "pushed")] == fired(app.schedules.tick())


def test_an_entry_that_is_off_stays_so_under_another_id(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """In whichever shard that id is; switched on, it fires again."""
    worker = declare(app, queue_name, Notes(), shards_count=8)
    at_noon(clock)
    app.schedules.put("poll", worker, every=MINUTE, id="a")
    app.schedules.disable(worker, "poll")
    for job_id in ("b", "c", "d"):
        app.schedules.put("poll", worker, every=MINUTE, id=job_id)
    clock.advance(60.0)
    assert ([False], []) == ([view.is_on for view in app.schedules.all()], fired(app.schedules.tick()))
    app.schedules.enable(worker, "poll")
    clock.advance(60.0)
    assert [("poll", 120.0, "pushed")] == fired(app.schedules.tick())


def test_two_moves_at_a_time_lose_no_entry(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither call removes what the other one has made meanwhile; the later one counts."""
    one, other = make_app(), make_app()
    workers = [declare(app, queue_name, Notes(), shards_count=8) for app in (one, other)]
    at_noon(clock)
    one.schedules.put("poll", workers[0], every=MINUTE, id="a")
    put = EntryStore.put

    def overtaken(store: EntryStore, *args: Any, **options: Any) -> str:
        status = put(store, *args, **options)
        monkeypatch.setattr(EntryStore, "put", put)
        clock.advance(1.0)
        other.schedules.put("poll", workers[1], every=MINUTE, id="c")
        return status

    monkeypatch.setattr(EntryStore, "put", overtaken)
    one.schedules.put("poll", workers[0], every=MINUTE, id="b")
    (view,) = one.schedules.all()
    assert view.entry
    assert "c" == view.entry.id
    clock.advance(60.0)
    assert [("poll", 60.0, "pushed")] == fired(one.schedules.tick())


def test_entries_go_with_their_queue_to_other_shards(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """L-68: by their ids, with what was decided of them; there and back again, without what was removed meanwhile."""
    at_noon(clock)
    apps = {count: make_app() for count in (3, 8)}
    workers = {count: declare(app, queue_name, Notes(), shards_count=count) for count, app in apps.items()}
    for job_id in "abcdef":
        apps[3].schedules.put(job_id, workers[3], every=MINUTE, id=job_id, missed="all")
    apps[3].schedules.disable(workers[3], "b")
    clock.advance(60.0)
    assert 5 == len(fired(apps[3].schedules.tick()))
    apps[3].drain()
    clock.advance(60.0)

    apps[8].operate(workers[8]).redeclare()
    assert [(name, 120.0, "pushed") for name in "acdef"] == sorted(fired(apps[8].schedules.tick()))
    assert [(60.0, "pushed"), (120.0, "pushed")] == outcomes(apps[8], workers[8], "a")
    apps[8].schedules.remove(workers[8], "a")
    apps[8].drain()

    back = make_app()
    worker = declare(back, queue_name, Notes(), shards_count=3)
    back.operate(worker).redeclare()
    assert [*"bcdef"] == [view.name for view in back.schedules.all()]
    assert [] == fired(back.schedules.tick())


@pytest.mark.parametrize("job_id", ["first", "second", "third"])
def test_of_two_records_of_a_name_the_one_that_holds_goes_to_the_new_shard(
    make_app: MakeApp, clock: ManualClock, queue_name: str, job_id: str
) -> None:
    """L-68: after another id in code, whichever shards the two were in: what has fired does not fire again."""
    at_noon(clock)

    def deployed(entry_id: str, shards_count: int) -> tuple[Lowkiq, Any]:
        app = make_app()
        worker = declare(app, queue_name, Notes(), shards_count=shards_count)
        app.every(MINUTE, worker, id=entry_id, name="poll")
        return app, worker

    for other in ("first", "second", "third", "fourth", "fifth", "sixth"):
        deployed(other, 8)[0].schedules.tick()
    app, _ = deployed(job_id, 8)
    clock.advance(60.0)
    assert [("poll", 60.0, "pushed")] == fired(app.schedules.tick())
    app.drain()
    app, worker = deployed(job_id, 1)
    app.operate(worker).redeclare()
    assert [] == fired(app.schedules.tick())
    clock.advance(60.0)
    assert [("poll", 120.0, "pushed")] == fired(app.schedules.tick())


def test_a_process_with_the_old_shards_takes_no_turn_from_the_others(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """L-68: it fires nothing until it is deployed anew, so those that can fire do not wait until it has looked."""
    at_noon(clock)
    apps = [make_app(), make_app()]
    for app, shards_count in zip(apps, (3, 8), strict=True):
        worker = declare(app, queue_name, Notes(), shards_count=shards_count)
        app.every(MINUTE, worker, id="poll")
        app.operate(worker).redeclare()
    looked: list[list[int]] = []
    for _ in range(2):
        looked.append([])
        for app in apps:
            results = app.schedules.duty_runner(clock).run_due(lambda: 60.0).results
            looked[-1] += [ticked["fired"] for ticked in results.values()]
        clock.advance(60.0)
    assert [[0, 0], [0, 1]] == looked
