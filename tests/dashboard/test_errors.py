"""Errors in groups, on the page and in the API, and the way from there to the actions on their jobs."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.operate.inspect import error_groups
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import Notes
from tests.kit.web import Browser
from tests.kit.workers import declare


def fail_each(batch: Batch) -> None:
    """Ids fail by what they are called."""
    for job_id in batch:
        kind, _, number = job_id.partition("-")
        batch.fail(job_id, {"late": "shop.Late: no parcel\n  in detail", "key": f"KeyError: {number}"}[kind])


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, clock: ManualClock) -> Any:
    """Three ids with one error, first two hours ago, and two with two errors of one type; of these one is dead."""
    worker: Any = declare(app, queue_name, Notes(fail_each), shards_count=2)
    worker.push_many([{"id": f"late-{number}"} for number in range(3)])
    app.drain()
    clock.advance(7_200.0)
    worker.push_many([{"id": "key-1"}, {"id": "key-2"}])
    app.drain()
    app.operate(worker).waiting.kill(["key-2"])
    return worker


def test_errors_are_grouped_by_their_first_line(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """SK-21: retries and the morgue together, the largest group first, with its first and last failure and hours."""
    found = app.operate.errors(worker, by="line")

    assert [("shop.Late: no parcel", "shop.Late", 3, 0), ("KeyError: 1", "KeyError", 1, 0)] == [
        (group.line, group.type, group.waiting, group.dead) for group in found.groups[:2]
    ]
    assert (5, 5, None, 0) == (found.counted, found.total, found.next, found.others)
    late, now = found.groups[0], clock.time()
    assert (now - 7_200.0, now) == (late.first_at, late.last_at)
    assert (3, 3) == (sum(late.hours), late.hours[-1])
    clock.advance(7_200.0)
    assert 3 == app.operate.errors(worker).groups[0].hours[-3]


def test_a_cursor_that_dies_is_not_an_error(app: Lowkiq, queue_name: str) -> None:
    """P9: a started job that is dead lies beside its progress, and is one error of one."""

    class Importing(Worker):
        max_retry_count = 0

        def perform_job(self, job: BatchJob) -> Iterator[int]:
            yield 1
            raise ValueError(f"{job.id} ends in the middle of a line")

    Importing.queue_name = queue_name
    app.worker(Importing).push_many([{"id": "prices"}])
    app.drain()

    found = app.operate.errors(Importing)

    assert (1, 1, 1) == (found.groups[0].dead, found.counted, found.total)


def test_errors_are_grouped_by_their_type_alone(app: Lowkiq, worker: Any) -> None:
    """For errors whose messages differ by the id."""
    assert [("shop.Late", 3, 0), ("KeyError", 1, 1)] == [
        (group.line, group.waiting, group.dead) for group in app.operate.errors(worker, by="type").groups
    ]


def test_errors_of_all_queues_are_counted_in_parts(app: Lowkiq, worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call reads a bounded number; each error is in one part, whatever the parts are."""
    other: Any = declare(app, f"{worker.queue_name}-other", Notes(fail_each))
    other.push_many([{"id": "late-9"}])
    app.drain()
    monkeypatch.setattr(error_groups, "READ_AT_ONCE", 1)
    monkeypatch.setattr(error_groups, "_ABREAST", 1)

    parts = [app.operate.errors(by="line")]
    while parts[-1].next is not None:
        parts.append(app.operate.errors(by="line", after=parts[-1].next))

    counts: dict[tuple[str, str], int] = {}
    for group in (group for part in parts for group in part.groups):
        assert group.count == sum(errors.count for errors in group.queues)
        for errors in group.queues:
            counts[errors.queue, group.line] = counts.get((errors.queue, group.line), 0) + errors.count
    name, late = worker.queue_name, "shop.Late: no parcel"
    assert {(name, late): 3, (name, "KeyError: 1"): 1, (name, "KeyError: 2"): 1, (other.queue_name, late): 1} == counts
    assert len(parts) > 1
    assert {6} == {part.total for part in parts}
    for damaged in ("", "x", "9", "1/5:0", f"1/0:{1 << 64}"):
        with pytest.raises(ValueError, match="is not the `next`"):
            app.operate.errors(after=damaged)


def test_an_error_of_several_queues_is_one_group_with_its_queues(
    app: Lowkiq, worker: Any, browser: Browser, clock: ManualClock
) -> None:
    """The sum, the share, when it was first seen, and in which release; acts stand at each queue alone."""
    other: Any = declare(app, f"{worker.queue_name}-other", Notes(fail_each))
    other.push_many([{"id": f"late-{number}"} for number in range(5)])
    app.drain()
    app.operate(other).waiting.kill(["late-0"])

    group = app.operate.errors(by="line").groups[0]
    assert (7, 1, clock.time() - 7_200.0, clock.time()) == (group.waiting, group.dead, group.first_at, group.last_at)
    assert [(other.queue_name, 4, 1), (worker.queue_name, 3, 0)] == [
        (errors.queue, errors.waiting, errors.dead) for errors in group.queues
    ]
    assert 8 == sum(group.hours) == sum(sum(errors.hours) for errors in group.queues)
    (answered,) = (each for each in browser.get("/api/v1/errors?by=line").json["groups"] if each["share"] > 0.5)
    assert (8 / 10, [5, 3]) == (answered["share"], [each["waiting"] + each["dead"] for each in answered["queues"]])

    whole, *parts = re.findall(r'<tr id="group-0.*?</tr>', browser.get("/errors?by=line").text, re.DOTALL)
    assert ("2 queues" in whole, "80 %" in whole, "<form" in whole) == (True, True, False)
    assert [(5, True), (3, False)] == [
        (int(re.sub("<[^>]*>", "", re.findall(r'"Jobs">(.*?)</td>', part)[0])), "Requeue" in part) for part in parts
    ]


def test_a_group_leads_to_the_actions_on_its_jobs(
    app: Lowkiq, worker: Any, browser: Browser, make_browser: MakeBrowser
) -> None:
    """SK-21: the confirmation has the error as its filter, and the action changes these jobs alone."""
    page = browser.get(f"/errors?queue={worker.queue_name}&by=line")
    row = page.text.partition('id="group-0"')[2]
    fields = dict(re.findall(r'name="(queue|search)" value="(.*?)"', row)[:2])
    assert "Counted 5 of 5 errors" in page.words
    assert "Counted 5 of 5 errors" in browser.get("/errors?by=type").words

    asked = browser.follow(browser.send("/actions/ask", {**fields, "do": "found:kill"}))
    assert "3 ids" in asked.words
    state = re.findall(r'name="action_state" value="(.*?)"', asked.text)[0]
    browser.send("/actions/step", {"action_state": state})

    groups = {group.line: (group.waiting, group.dead) for group in app.operate.errors(worker, by="line").groups}
    assert {"shop.Late: no parcel": (0, 3), "KeyError: 1": (1, 0), "KeyError: 2": (0, 1)} == groups
    assert "Kill" not in make_browser(READER).get("/errors").words
    assert (404, 400) == (browser.get("/errors?queue=nobody").status, browser.get("/errors?after=x").status)


def test_errors_and_counts_of_a_filter_in_the_api(worker: Any, browser: Browser) -> None:
    """A count changes nothing, and needs no more than to read."""
    name = quote(worker.queue_name)
    assert [("KeyError: 1", 1)] == [
        (group["line"], group["waiting"])
        for group in browser.get(f"/api/v1/errors?queue={name}&by=line").json["groups"]
        if group["line"] == "KeyError: 1"
    ]
    assert "bad_cursor" == browser.get("/api/v1/errors?cursor=x").json["code"]
    found = browser.get(f"/api/v1/waiting/count?queue={name}&error=no%20parcel")
    assert {"count": 3, "is_all": True} == found.json
    assert 4 == browser.get(f"/api/v1/waiting/count?queue={name}").json["count"]
    assert 1 == browser.get(f"/api/v1/morgue/count?queue={name}&prefix=key").json["count"]
    assert "bad_parameter" == browser.get(f"/api/v1/morgue/count?queue={name}&min_retry_count=1").json["code"]


def test_an_error_that_cannot_be_read_hides_no_other(app: Lowkiq, worker: Any) -> None:
    """What a codec raises is answered with the bytes as they are."""

    def raising(_stored: bytes) -> str:
        raise RuntimeError

    reader = ShardReader(app.core.backend, app.config.redis_retry_for)
    found = error_groups.error_groups(
        reader, {worker.queue_name: app.core.queues.agreed(worker).shards}, StoredErrors(raising)
    )

    assert "shop.Late: no parcel" == found.groups[0].line
