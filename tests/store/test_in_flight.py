"""The list of ids in flight: what a filter and a search find of it, and the holders that are evicted for them."""

from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.base.fingerprint import fingerprint
from lowkiq_lambda.operate.in_flight import InFlightIds
from tests.kit.desk import Desk, MakeDesk
from tests.kit.looks import ids_of

Look = Callable[[InFlightIds], object]


def while_they_run(desk: Desk, *looks: Look) -> list[object]:
    """What these see while a batch runs: four ids of one shard, of which two have failed before."""
    desk.push([{"id": "a1"}, {"id": "a2"}])
    desk.handler.failing = {"a1", "a2"}
    desk.drain()
    desk.handler.failing = set()
    desk.clock.advance(3_600.0)
    desk.push([{"id": "b1"}, {"id": "b2"}])
    seen: list[object] = []
    desk.handler.meanwhile = lambda: seen.extend(look(desk.queue.in_flight) for look in looks)
    desk.drain()
    return seen


def test_a_search_and_a_filter_find_ids_in_flight(desk: Desk) -> None:
    """By the beginning of the id, a part of the last error, its fingerprint, and bounds of the id; page by page."""
    assert [
        ["a1", "a2"],
        ["a1", "a2"],
        ["b2"],
        [],
        ["a1", "a2", "b1"],
        ["b2"],
        (["a1"], ["a2"]),
        (4, 2, 1),
    ] == while_they_run(
        desk,
        lambda listed: ids_of(listed.search(prefix="a")),
        lambda listed: ids_of(listed.search("IS BROKEN")),
        lambda listed: ids_of(listed.search(prefix="b2")),
        lambda listed: ids_of(listed.search("something else")),
        lambda listed: ids_of(listed.list(filter={"most_id": "[b1"})),
        lambda listed: ids_of(listed.list(filter={"least_id": "(b1"})),
        lambda listed: (
            ids_of(first := listed.search(prefix="a", limit=1)),
            ids_of(listed.search(prefix="a", limit=1, after=first.next)),
        ),
        lambda listed: (listed.count(), listed.count({"error": "broken"}), listed.count({"prefix": "a2"})),
    )
    assert [] == desk.queue.in_flight.search()


def test_errors_of_ids_in_flight_are_found_by_their_fingerprint(desk: Desk) -> None:
    """That of a group on the page of errors; another one finds nothing."""
    failed: list[str] = []

    def look(listed: InFlightIds) -> None:
        (job,) = listed.fetch(["a1"])
        failed.append(job.error or "")
        failed.extend(ids_of(listed.search(fingerprint=fingerprint(failed[0]).digits)))
        failed.extend(ids_of(listed.search(fingerprint="0" * 16)))

    while_they_run(desk, look)

    assert "a1" in failed[1:]
    assert {"a1", "a2"} >= {*failed[1:]}


@pytest.mark.parametrize(
    ("choice", "evicted"),
    [
        ({"ids": ["b1", "a1", "waits"]}, 1),
        ({"ids": ["waits"]}, 0),
        ({"ids": []}, 0),
        ({"filter": {"prefix": "a"}}, 1),
        ({"filter": {"prefix": "z"}}, 0),
        ({"filter": {}}, 1),
        ({"everything": True}, 1),
    ],
    ids=str,
)
def test_the_holder_of_ids_in_flight_is_evicted(desk: Desk, choice: dict[str, Any], evicted: int) -> None:
    """Once for all of its ids; what it writes is refused, and its ids run again."""
    desk.push([{"id": "waits", "delay": 100_000}])

    seen = while_they_run(desk, lambda listed: listed.evict(**choice), lambda listed: listed.evict(["unknown"]))

    assert [evicted, 0] == seen
    assert (4 if evicted else 0) == len(desk.state()["flight"])
    assert [shard.gave_up for shard in desk.queue.shards()] == [bool(evicted)]


def test_each_shard_with_such_an_id_has_its_holder_evicted(make_desk: MakeDesk) -> None:
    """A holder of other ids is left alone, and so is a shard in which nothing is in flight."""
    desk = make_desk({"shards_count": 8, "batch_size": 1})
    desk.push([{"id": str(number)} for number in range(40)])
    seen: list[tuple[int, int]] = []

    def act() -> None:
        if not seen:
            in_flight = desk.queue.in_flight
            seen.append((in_flight.evict(["none of them"]), in_flight.evict(everything=True)))

    desk.handler.meanwhile = act
    desk.drain()

    assert [(0, 1)] == seen
    assert 1 == sum(shard.gave_up for shard in desk.queue.shards())


def test_a_choice_that_no_id_in_flight_can_have_is_refused(desk: Desk) -> None:
    """An id in flight has no time at which it is due; and one of the three has to be named."""
    in_flight = desk.queue.in_flight
    for wanted in ({"least": "5"}, {"most_count": "1"}):
        refused: list[Look] = [
            lambda listed, wanted=wanted: listed.evict(filter=wanted),  # type: ignore[misc]  # bound by now
            lambda listed, wanted=wanted: listed.list(filter=wanted),  # type: ignore[misc]  # as above
            lambda listed, wanted=wanted: listed.count(wanted),  # type: ignore[misc]  # as above
        ]
        for look in refused:
            with pytest.raises(ValueError, match="A filter of ids in flight has least_id, most_id, prefix"):
                look(in_flight)
    with pytest.raises(ValueError, match="Give exactly one of ids, a filter, or everything=True"):
        in_flight.evict()
    with pytest.raises(JobError):
        in_flight.evict(["\ud800"])
