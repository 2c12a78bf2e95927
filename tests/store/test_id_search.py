"""Searches by the beginning of ids and by a text in errors, and jobs in flight page by page."""

from typing import TYPE_CHECKING

import pytest

from lowkiq_lambda.operate.inspect import id_search, jobs
from tests.kit.desk import Desk, MakeDesk
from tests.kit.looks import ids_of, pairs

if TYPE_CHECKING:
    from lowkiq_lambda import JobView
    from lowkiq_lambda.views.jobs import Page

IDS = [f"job-{number}" for number in range(500)] + ["job", "other", "é", "", "(", "a\0b"]


def all_found(desk: Desk, limit: int, **sought: str) -> list[str]:
    """The ids of all pages."""
    found = list[str]()
    after: str | None = None
    while True:
        page = desk.queue.waiting.reader.search_ids(sought.get("prefix", ""), sought.get("text", ""), limit, after)
        assert len(page) <= limit
        found += page
        after = page.next
        if after is None:
            return found


@pytest.mark.parametrize("limit", [1, 7, 100, 10_000])
def test_a_search_finds_everything_once(make_desk: MakeDesk, limit: int) -> None:
    """Page by page, over all shards, whatever the ids are made of."""
    desk = make_desk({"shards_count": 3})
    desk.push([{"id": job_id} for job_id in IDS])

    assert sorted(IDS) == sorted(all_found(desk, limit))
    assert sorted(one for one in IDS if one.startswith("job-1")) == sorted(all_found(desk, limit, prefix="job-1"))
    assert ["a\0b"] == all_found(desk, limit, prefix="a\0")


def test_a_search_ends_after_a_bounded_look_and_goes_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may be empty and yet have a next one."""
    monkeypatch.setattr(id_search, "READ_AT_ONCE", 200)
    monkeypatch.setattr(id_search, "STEP", 50)
    desk.push([{"id": f"job-{number}"} for number in range(2_000)] + [{"id": "needle"}])

    pages: list[Page[JobView]] = []
    after: str | None = None
    while after or not pages:
        pages.append(desk.queue.waiting.search(prefix="needle", after=after))
        after = pages[-1].next
    assert len(pages) > 5
    assert ["needle"] == [job_id for page in pages for job_id in ids_of(page)]


def test_errors_are_searched_by_a_text(desk: Desk) -> None:
    """In whatever case of ASCII, literally; only of what waits, and apart in the morgue."""
    desk.handler.words = "%d [Größe] TimeOut"
    desk.fail([{"id": "a"}, {"id": "b"}])
    desk.push([{"id": "c"}])

    for text in ("timeout", "%D [", "Größe", "A %"):
        assert "a" in ids_of(desk.queue.waiting.search(text=text)), text
    assert [] == desk.queue.waiting.search(text="t.meout")
    assert ["b"] == ids_of(desk.queue.waiting.search("timeout", prefix="b"))
    assert [] == desk.queue.morgue.search(text="timeout")
    desk.queue.waiting.kill(everything=True)
    assert ["a", "b"] == ids_of(desk.queue.morgue.search(text="timeout"))
    assert [] == desk.queue.waiting.search(text="timeout")


def test_errors_of_what_is_in_flight_are_not_of_what_waits(desk: Desk) -> None:
    """Its error is kept until it succeeds, but it waits no more."""
    desk.fail([{"id": "a"}])
    desk.queue.waiting.run_now(everything=True)
    seen: list[object] = []
    desk.handler.meanwhile = lambda: seen.append(desk.queue.waiting.search(text="broken"))
    desk.drain()
    assert [[]] == seen


@pytest.mark.parametrize(
    "after", ["", "x", "0", "1:0", "-1:0", "0:x", "0:-1:a", "0:99999999999999999999999", "0:1_0", "0: 1", "0:\u0661"]
)
def test_what_is_no_cursor_is_refused(desk: Desk, after: str) -> None:
    """With a sentence."""
    with pytest.raises(ValueError, match="is not the `next` of a search"):
        desk.queue.waiting.search(after=after)


def test_jobs_in_flight_come_page_by_page(make_desk: MakeDesk) -> None:
    """By shard and id, all of them once; and one by one."""
    desk = make_desk({"batch_size": 10})
    desk.push([{"id": f"{number:02}", "payload": number} for number in range(10)])
    pages: list[Page[JobView]] = []
    fetched: list[JobView] = []

    def look() -> None:
        pages.append(desk.queue.in_flight.list(6))
        pages.append(desk.queue.in_flight.list(6, after=pages[0].next))
        fetched.extend(desk.queue.in_flight.fetch(["03", "unknown"]))

    desk.handler.meanwhile = look
    desk.drain()
    assert [[f"{number:02}" for number in part] for part in (range(6), range(6, 10))] == [
        ids_of(page) for page in pages
    ]
    assert pages[1].next is None
    assert ["03"] == ids_of(fetched)
    assert [] == desk.queue.in_flight.list()


def test_a_glimpse_shows_the_first_payload_if_it_is_small(desk: Desk) -> None:
    """How many there are is told all the same."""
    large = "x" * jobs.GLIMPSE[2]
    desk.push([{"id": "small", "payload": number, "score": number} for number in range(5)])
    desk.push([{"id": "large", "payload": large}, {"id": "mixed", "payload": large, "score": 1}])
    desk.push([{"id": "mixed", "payload": 2, "score": 2}])

    small, one, mixed = desk.queue.glimpse().waiting.fetch(["small", "large", "mixed"])
    assert ([(0, 0.0)], 4) == (pairs(small), small.more_payloads)
    assert ([], 1) == (pairs(one), one.more_payloads)
    assert ([], 2) == (pairs(mixed), mixed.more_payloads)
