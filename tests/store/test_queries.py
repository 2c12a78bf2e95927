"""What people see of jobs."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast
from uuid import UUID

import pytest
from msgspec.structs import replace

from lowkiq_lambda import Failure, JobError, JobView, Lowkiq, MorgueJob, ScoredPayload, Worker
from lowkiq_lambda.operate.inspect import id_ranges
from lowkiq_lambda.operate.inspect.jobs import BYTES_SHOWN, PAYLOADS_SHOWN
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.jobs import Page
from tests.kit.apps import MakeApp
from tests.kit.desk import Desk, MakeDesk
from tests.kit.handlers import LATER, FailingHandler
from tests.kit.looks import ids_of, pairs
from tests.kit.servers import Cluster
from tests.kit.workers import declare

WEIRD = [
    "",
    " ",
    ":",
    "{",
    "}{",
    "*",
    "a\nb",
    "\0",
    "x" * 10_000,
    "🚚",
    "é",
    "e\u0301",
    "(a",
    "[a",
    "-",
    "+",
    "-inf",
    "\U0010ffff",
    "\uffff",
]
PagedBy = Callable[..., Page[Any]]
NOW = ManualClock().time()


def all_of(query: PagedBy, *bounds: object, limit: int, **options: Any) -> list[str]:
    """The ids of all pages, one after the other."""
    found, after = [], None
    while True:
        page = query(*bounds, limit=limit, after=after, **options)
        assert len(page) <= limit
        found += ids_of(page)
        after = page.next
        if after is None:
            return found


def test_fetch_shows_what_waits(make_desk: MakeDesk) -> None:
    """Payloads with their scores in order, time, retry_count and error; ids in the order asked for, each once."""
    desk = make_desk({"shards_count": 7})
    desk.push([{"id": 1, "payload": {"n": n}, "score": n} for n in (3, 1, 2)])
    desk.push([{"id": UUID(int=1), "delay": 5}])
    desk.fail([{"id": "bad", "payload": None, "score": -2.5}])
    desk.push([{"id": 1, "payload": {"n": n}, "score": n} for n in (3, 1, 2)])
    now = desk.clock.time()

    failures = (Failure(now, 0.0, "bad is broken"),)
    assert [
        JobView("bad", [ScoredPayload(None, -2.5)], now + LATER, 0.0, "bad is broken", 0, failures),
        JobView("1", [ScoredPayload({"n": n}, n) for n in (1, 2, 3)], now, -1.0, None),
        JobView(str(UUID(int=1)), [ScoredPayload("", now)], now + 5, -1.0, None),
    ] == desk.queue.waiting.fetch(["bad", 1, "unknown", UUID(int=1), "1", "bad"])


def test_fetch_tells_an_id_from_a_list_of_ids(app: Lowkiq, queue_name: str) -> None:
    """A lone text is no list of letters, and what can be no id is refused as a push refuses it."""
    queue = app.operate(declare(app, queue_name, FailingHandler()))

    with pytest.raises(TypeError, match="as a list"):
        queue.waiting.fetch("abc")
    for wrong in (1.5, True, None, "\ud800"):
        with pytest.raises(JobError, match="id"):
            queue.waiting.fetch([wrong])
    assert [] == queue.waiting.fetch([])


@pytest.mark.parametrize("job_id", WEIRD, ids=range(len(WEIRD)))
def test_any_text_can_be_an_id(make_desk: MakeDesk, job_id: str) -> None:
    """E-60: it is found by its bytes, in every list, and nothing else is."""
    desk = make_desk({"shards_count": 3})
    desk.kill([{"id": job_id, "payload": "dead"}])
    desk.push([{"id": job_id, "payload": n, "score": n} for n in range(3)])
    desk.push([{"id": f"{job_id}{job_id}!"}])

    assert [job_id] == ids_of(desk.queue.waiting.fetch([job_id]))
    assert [(n, n) for n in range(3)] == pairs(desk.queue.waiting.fetch([job_id])[0])
    assert [job_id] == ids_of(desk.queue.waiting.list("id", "[" + job_id, "[" + job_id))
    assert [job_id] == ids_of(desk.queue.morgue.fetch([job_id]))
    assert [job_id] == ids_of(desk.queue.morgue.list("id"))
    assert {job_id, f"{job_id}{job_id}!"} == set(all_of(desk.queue.waiting.list, limit=1))


def test_fetch_looks_many_ids_up_in_parts(app: Lowkiq, queue_name: str) -> None:
    """More ids than a call takes, or longer ones, come from several calls."""
    worker = declare(app, queue_name, FailingHandler(), shards_count=2)
    ids = [str(n) for n in range(3 * id_ranges.IDS_AT_ONCE)] + [f"{n:060000}" for n in range(40)]
    worker.push_many([{"id": job_id} for job_id in ids])

    assert ids == ids_of(app.operate(worker).waiting.fetch(ids))


@pytest.mark.nightly("pages of many payloads are part of each check")
def test_an_id_with_very_many_payloads_is_shown_in_part(app: Lowkiq, queue_name: str) -> None:
    """What is shown of one job is bounded; how many payloads there are besides is told."""
    worker = declare(app, queue_name, FailingHandler())
    worker.push_many([{"id": "many", "payload": n, "score": n} for n in range(100_000)])
    worker.push_many([{"id": "few", "payload": n, "score": n} for n in range(3)])
    many, few = app.operate(worker).waiting.fetch(["many", "few"])

    assert list(range(PAYLOADS_SHOWN)) == [payload for payload, _ in many.payloads]
    assert 100_000 - PAYLOADS_SHOWN == many.more_payloads
    assert (3, 0) == (len(few.payloads), few.more_payloads)


def test_large_payloads_are_shown_as_far_as_they_fit(app: Lowkiq, queue_name: str) -> None:
    """A page is bounded by bytes too, but one payload of each job is always shown."""
    worker = declare(app, queue_name, FailingHandler())
    large = "x" * BYTES_SHOWN
    jobs = [{"id": job_id, "payload": large + str(n), "score": n} for job_id in range(80) for n in range(2)]
    worker.push_many(jobs)
    found = app.operate(worker).waiting.fetch(range(80))

    assert [([large + "0"], 1)] * 80 == [([payload for payload, _ in job.payloads], job.more_payloads) for job in found]


def test_a_page_of_many_payloads_comes_in_several_calls(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """No script shows more than its share, so that what is to be performed never waits long for who looks."""
    desk.push([{"id": job_id, "payload": n} for job_id in range(30) for n in range(1_000)])
    calls: list[str] = []
    ask = ShardReader.ask_each

    def count(reader: ShardReader, name: str, *args: Any) -> Any:
        calls.append(name)
        return ask(reader, name, *args)

    monkeypatch.setattr(ShardReader, "ask_each", count)
    found = desk.queue.waiting.fetch(range(30))

    assert [1_000] * 30 == [len(job.payloads) for job in found]
    assert ["read_jobs"] * 3 == calls


def test_what_cannot_be_decoded_is_shown_raw(make_app: MakeApp, queue_name: str) -> None:
    """A payload or an error that its loader chokes on never hides a job, wherever it is."""

    def refuse(_stored: bytes) -> Any:
        raise RuntimeError("not mine")

    app = make_app(dump_payload=lambda payload: str(payload).encode(), load_payload=refuse, load_error=refuse)
    worker = declare(app, queue_name, FailingHandler(), max_retry_count=0)
    queue = app.operate(worker)
    worker.push_many([{"id": "a", "payload": "dead", "score": 1}])
    app.drain()
    worker.push_many([{"id": "a", "payload": "waiting", "score": 2}])

    (dead,), (waiting,) = queue.morgue.fetch(["a"]), queue.waiting.list("id")
    assert [(b"dead", 1.0)] == pairs(dead)
    assert "RuntimeError" in str(dead.error)
    assert [(b"waiting", 2.0)] == pairs(waiting)


def test_processing_shows_what_is_in_flight(make_desk: MakeDesk) -> None:
    """LN-24: of all shards, by due_at, with count and error; nothing of it waits."""
    desk = make_desk({"batch_size": 3})
    desk.fail([{"id": "again", "payload": "x", "score": 1}])
    desk.clock.advance(LATER)
    desk.push([{"id": "many", "payload": n, "score": n} for n in range(2)])
    seen: list[tuple[list[JobView], list[JobView]]] = []
    desk.handler.meanwhile = lambda: seen.append(
        (desk.queue.in_flight.list(), desk.queue.waiting.fetch(["again", "many"]))
    )
    desk.drain()

    again = JobView("again", [ScoredPayload("x", 1.0)], desk.clock.time(), 0.0, "again is broken")
    many = JobView("many", [ScoredPayload(0, 0.0), ScoredPayload(1, 1.0)], desk.clock.time(), -1.0, None)
    assert [([again, many], [])] == seen
    assert [] == desk.queue.in_flight.list()


def test_s22_what_is_taken_moves_from_what_waits_to_what_is_in_flight(make_desk: MakeDesk) -> None:
    """S-22, S-20, S-21: of a, b and c one is taken: c and b wait, a is in flight; once settled it is in neither."""
    desk = make_desk({"shards_count": 1, "batch_size": 1})
    desk.push([{"id": job_id} for job_id in "abc"])

    def looked() -> tuple[list[str], list[str]]:
        return ids_of(desk.queue.waiting.list("id", "-", "+")), ids_of(desk.queue.in_flight.list())

    during: list[tuple[list[str], list[str]]] = []
    desk.handler.meanwhile = lambda: during.append(looked())
    before = looked()
    desk.drain()

    assert (["a", "b", "c"], []) == before
    assert [(["b", "c"], ["a"])] == during
    assert ([], []) == looked()


def test_morgue_jobs_show_when_they_came_and_why(make_desk: MakeDesk) -> None:
    """L-32, L-33, LN-23: id, payloads, date and error, by date and by id."""
    desk = make_desk({"shards_count": 5})
    dates = {}
    for job_id in "cab":
        desk.kill([{"id": job_id, "payload": n, "score": n} for n in (2, 1)])
        dates[job_id] = desk.clock.time()
        desk.clock.advance(1)
    jobs = {
        job_id: MorgueJob(job_id, [ScoredPayload(1, 1.0), ScoredPayload(2, 2.0)], at, f"{job_id} is broken")
        for job_id, at in dates.items()
    }

    fetched = desk.queue.morgue.fetch(["b", "x", "c"])
    assert [jobs["b"], jobs["c"]] == [replace(job, failures=()) for job in fetched]
    assert [jobs["c"], jobs["a"], jobs["b"]] == desk.queue.morgue.list()
    assert [jobs["b"], jobs["a"]] == desk.queue.morgue.list("updated_at", dates["a"], reverse=True)
    assert [jobs["a"], jobs["b"], jobs["c"]] == desk.queue.morgue.list("id")
    assert [jobs["b"]] == desk.queue.morgue.list("id", "(a", "(c", reverse=True)


@pytest.fixture
def scheduled(app: Lowkiq, queue_name: str) -> type[Worker]:
    """Ids t0 … t9, due in 0 … 9 seconds, in three shards."""
    worker = declare(app, queue_name, FailingHandler(), shards_count=3)
    worker.push_many([{"id": f"t{n}", "due_at": NOW + n} for n in range(10)])
    return worker


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        ("-inf", "+inf", range(10)),
        ("-", "+", range(10)),
        (2, 4, (2, 3, 4)),
        ("(2", "(4", (3,)),
        ("(2", 4, (3, 4)),
        ("[2", "[4", (2, 3, 4)),
        (4, 2, ()),
        ("+inf", "-inf", ()),
        (7, "inf", (7, 8, 9)),
        ("-inf", "(1", (0,)),
    ],
)
def test_bounds_are_as_in_redis(
    app: Lowkiq, scheduled: type[Worker], least: object, most: object, expected: list[int]
) -> None:
    """LN-22: a value, "(" and a value, and the infinities; both ways."""

    def absolute(bound: object) -> Any:
        digits = str(bound).lstrip("([")
        return str(bound).replace(digits, repr(NOW + float(digits))) if digits.isdigit() else bound

    queue, ids = app.operate(scheduled), [f"t{n}" for n in expected]

    assert ids == ids_of(queue.waiting.list("due_at", absolute(least), absolute(most)))
    assert ids[::-1] == ids_of(queue.waiting.list("due_at", absolute(least), absolute(most), reverse=True))


@pytest.mark.parametrize("bound", ["", "soon", "((1", "-nan", float("nan"), True, "1 2", 10**400], ids=str)
def test_a_bad_bound_is_refused(app: Lowkiq, scheduled: type[Worker], bound: Any) -> None:
    """A sentence says what a bound is."""
    queue = app.operate(scheduled)
    lists = (queue.waiting.list, partial(queue.waiting.list, "retry_count"), queue.morgue.list)
    for query in cast("tuple[PagedBy, ...]", lists):
        with pytest.raises(ValueError, match="is not a bound"):
            query(min=bound, max="+inf")
        with pytest.raises(ValueError, match="is not a bound"):
            query(min="-inf", max=bound)


def test_a_bad_limit_or_cursor_is_refused(app: Lowkiq, scheduled: type[Worker]) -> None:
    """A page has from 1 to 10,000 jobs, and goes on after a page's `next` only."""
    queue = app.operate(scheduled)
    for query in (queue.waiting.list, partial(queue.waiting.list, "retry_count"), partial(queue.waiting.list, "id")):
        for limit in (0, -1, 10_001, 1.5, "5", None):
            with pytest.raises(ValueError, match="limit must be from 1 to 10,000"):
                query(limit=limit)  # type: ignore[arg-type]  # some are no numbers, on purpose
        for after in ("", "1:2", "x:1:id", "nan:0:id"):
            with pytest.raises(ValueError, match="not the `next` of a page"):
                query(after=after)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_show_each_job_once(make_desk: MakeDesk, limit: int, reverse: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Paging goes by (value, shard, id), so equal values on a page's edge lose and double nothing."""
    desk = make_desk({"shards_count": 3})
    desk.kill([{"id": f"dead {n}"} for n in range(9)])
    desk.fail([{"id": f"failed {n}"} for n in range(9)])
    desk.push([{"id": "f" * (n + 1), "delay": 5 * (n % 3)} for n in range(18)])
    everything = desk.queue.waiting.list("id", limit=1000)
    shard_of = {job.id: desk.app.push_many(desk.worker, [{"id": job.id, "payload": ""}])[0].shard for job in everything}
    step = -1 if reverse else 1

    by_time = sorted(everything, key=lambda job: (job.due_at, shard_of[job.id], job.id))
    by_count = sorted(everything, key=lambda job: (job.retry_count, shard_of[job.id], job.id))
    by_id = sorted(everything, key=lambda job: job.id)
    assert 27 == len(everything)
    for query, expected in (
        (desk.queue.waiting.list, by_time),
        (partial(desk.queue.waiting.list, "retry_count"), by_count),
        (partial(desk.queue.waiting.list, "id"), by_id),
    ):
        assert ids_of(expected)[::step] == all_of(query, limit=limit, reverse=reverse)
    dead = [f"dead {n}" for n in range(9)][::step]
    assert dead == all_of(partial(desk.queue.morgue.list, "id"), limit=limit, reverse=reverse)
    by_date = all_of(desk.queue.morgue.list, limit=limit, reverse=reverse)
    assert dead == sorted(by_date, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
def test_paging_goes_on_though_its_last_job_is_gone(app: Lowkiq, queue_name: str, reverse: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A cursor is a place, not a job: what left the list meanwhile moves nothing past the reader."""
    worker = declare(app, queue_name, FailingHandler(), shards_count=2)
    queue = app.operate(worker)
    worker.push_many([{"id": f"{n:02}", "due_at": NOW} for n in range(20)])
    first = queue.waiting.list(limit=4, reverse=reverse)
    app.operate(worker).waiting.delete(ids_of(first))
    second = queue.waiting.list(limit=100, reverse=reverse, after=first.next)

    assert 16 == len(second)
    assert set(ids_of(queue.waiting.list("id"))) == set(ids_of(second))


def test_fresh_jobs_are_found_by_their_retry_count(desk: Desk) -> None:
    """LN-33: -1 stands for what has not failed; a range may hold both."""
    desk.fail([{"id": "failed"}])
    desk.push([{"id": "fresh"}])

    assert ["fresh"] == ids_of(desk.queue.waiting.list("retry_count", "-inf", -1, reverse=True))
    assert ["failed"] == ids_of(desk.queue.waiting.list("retry_count", 0))
    assert ["fresh", "failed"] == ids_of(desk.queue.waiting.list("retry_count"))
    assert ["failed", "fresh"] == ids_of(desk.queue.waiting.list("retry_count", reverse=True))
    assert ["failed"] == ids_of(desk.queue.waiting.list("retry_count", "(-1", "+inf"))
    assert [] == desk.queue.waiting.list("retry_count", "(0", "+inf")


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        ("-", "+", ["A", "a", "aa", "b", "é"]),
        ("a", "b", ["a", "aa", "b"]),
        ("(a", "[b", ["aa", "b"]),
        ("[a", "(b", ["a", "aa"]),
        ("+", "-", []),
        ("-", "-", []),
        ("b", "a", []),
        ("c", "+", ["é"]),
        ("-", 5, []),
    ],
)
def test_ids_are_in_the_order_of_their_bytes(
    app: Lowkiq, queue_name: str, least: str, most: str, expected: list[str]
) -> None:
    """Bounds by id are as Redis has them."""
    worker = declare(app, queue_name, FailingHandler(), shards_count=4)
    worker.push_many([{"id": job_id} for job_id in ("b", "é", "aa", "A", "a")])
    queue = app.operate(worker)

    assert expected == ids_of(queue.waiting.list("id", least, most))
    assert expected[::-1] == ids_of(queue.waiting.list("id", least, most, reverse=True))


def test_a_search_that_was_cut_says_so(app: Lowkiq, queue_name: str) -> None:
    """By id there is no index: who is told that something may be missing can narrow the question."""
    worker = declare(app, queue_name, FailingHandler(), shards_count=2)
    worker.push_many([{"id": f"{n:05}"} for n in range(25_000)])
    queue = app.operate(worker)
    exact = queue.waiting.list("id", "00500", "+")
    queue.waiting.reader.scan_at_most = 5_000

    assert ([f"{n:05}" for n in range(500, 600)], False) == (ids_of(exact), exact.cut)
    assert queue.waiting.list("id").cut
    assert queue.waiting.list("retry_count", -1, -1).cut
    assert not queue.waiting.list().cut


def test_what_goes_away_between_two_looks_is_left_out(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page never shows a job that is not there, and still goes on."""
    worker = declare(app, queue_name, FailingHandler())
    worker.push_many([{"id": str(n), "delay": n + 1} for n in range(6)])
    queue, ask = app.operate(worker), ShardReader.ask_each

    def ask_after_a_deletion(reader: ShardReader, name: str, *args: Any) -> Any:
        if name == "read_jobs":
            queue.waiting.delete(["1"])
        return ask(reader, name, *args)

    monkeypatch.setattr(ShardReader, "ask_each", ask_after_a_deletion)
    page = queue.waiting.list(limit=3)

    assert ["0", "2"] == ids_of(page)
    assert ["3", "4", "5"] == ids_of(queue.waiting.list(limit=3, after=page.next))


def test_queries_of_a_cluster(cluster: Cluster, make_app: MakeApp, queue_name: str) -> None:
    """Shards on several nodes are merged into one list."""
    app, handler = make_app(redis_url=cluster.url), FailingHandler()
    worker = declare(app, queue_name, handler, shards_count=9)
    worker.push_many([{"id": f"{n:02}", "delay": n + 1} for n in range(30)])
    ids = [f"{n:02}" for n in range(30)]
    queue = app.operate(worker)

    assert ids == all_of(queue.waiting.list, limit=7)
    assert ids == all_of(partial(queue.waiting.list, "id"), limit=7)
    assert set(ids) == set(ids_of(queue.waiting.fetch(ids)))


def test_a_function_has_queries_too(app: Lowkiq, queue_name: str) -> None:
    """What `@app.worker` makes of a function stands for its queue."""

    @app.worker(queue_name=queue_name)
    def work(batch: object) -> None:
        """Nothing."""

    work.push_many([{"id": 1}])

    assert ["1"] == ids_of(app.operate(work).waiting.fetch([1]))
    assert 1 == app.operate(work).waiting.delete([1])
