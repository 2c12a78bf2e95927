"""Ids: any text, kept byte for byte; values that only look like an id are refused (E-60, E-61, L-12)."""

import unicodedata
from enum import Enum, IntEnum
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from lowkiq_lambda import JobError, Lowkiq
from lowkiq_lambda.push import checking
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, failing
from tests.kit.looks import left_behind
from tests.kit.workers import declare, jobs_of


def test_l12_an_integer_id_is_its_text(app: Lowkiq, queue_name: str) -> None:
    """L-12, E-61: 1 and "1" are one id, delivered as "1"; a UUID is its text too."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=9)
    uuid = UUID("12345678-1234-5678-1234-567812345678")

    worker.push_many([{"id": 1, "payload": "int"}, {"id": "1", "payload": "str"}, {"id": uuid}])
    app.drain()

    assert [{"1": ["int", "str"], str(uuid): [""]}] == notes.batches


ODD_IDS = [
    "",
    " ",
    "  ",
    ":",
    "a:b",
    "{",
    "}",
    "{a}",
    "}{",
    "*",
    "[",
    "(",
    "-",
    "+",
    "\n",
    "a\nb",
    "\x00",
    "a\x00b",
    "a\x00",
    "\x7f\x80\xff",
    "😀",
    "день",
    unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"),
    "0",
    "-1",
    "1.0",
    "None",
    "null",
    "x" * 10_000,
    "😀" * 2_500,
]


def test_e60_ids_of_any_text_are_kept_as_they_are(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-60: no id is normalised, cut, or taken for another, through push, merge, failure and success."""
    notes = Notes(failing(*ODD_IDS))
    worker = declare(app, queue_name, notes, batch_size=7, shards_count=3)
    for payload in (1, 2):
        pushed = worker.push_many(jobs_of(ODD_IDS, payload=payload))
        assert ODD_IDS == [one.id for one in pushed]

    assert {"failed": len(ODD_IDS), "retried": len(ODD_IDS)} == app.drain()
    notes.clear()
    notes.then = None
    clock.advance(10)
    app.drain()

    delivered = {job_id: payloads for batch in notes.batches for job_id, payloads in batch.items()}
    assert {job_id: [1, 2] for job_id in ODD_IDS} == delivered
    assert {} == left_behind(app, worker)


def test_e60_ids_of_any_text_go_to_the_morgue_as_they_are(app: Lowkiq, queue_name: str) -> None:
    """E-60: one id's payloads never lie under another that starts alike."""
    notes = Notes(failing(*ODD_IDS))
    worker = declare(app, queue_name, notes, batch_size=50, max_retry_count=0)
    worker.push_many({"id": job_id, "payload": position} for position, job_id in enumerate(ODD_IDS))

    app.drain()

    dead = {job.id: [payload for payload, _ in job.payloads] for job in notes.dead}
    assert {job_id: [position] for position, job_id in enumerate(ODD_IDS)} == dead


@pytest.mark.parametrize("given", [None, True, False, 1.0, 0.5, b"a", b"", (1,), [1], {"a": 1}, object()])
def test_e60_e61_what_is_no_id_is_refused(app: Lowkiq, queue_name: str, given: object) -> None:
    """E-60, E-61, LB-19: None, bools, floats, bytes and other objects are no ids."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 1: id: must be a str, an int or a UUID, not "):
        worker.push_many([{"id": "fine"}, {"id": given}])

    assert {} == app.drain()


@pytest.mark.parametrize("given", ["\ud800", "a\udfffb", "\ude00\ud83d"])
def test_e60_lone_surrogates_are_refused(app: Lowkiq, queue_name: str, given: str) -> None:
    """E-60: a text that UTF-8 has no bytes for cannot be stored, and says so."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 0: id: holds a lone surrogate"):
        worker.push_many([{"id": given}])


def test_e60_ids_have_a_limit(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E-60: the limit counts bytes, not letters; at it an id passes."""
    monkeypatch.setattr(checking, "MAX_ID_BYTES", 8)
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 0: id: has 12 bytes, more than 8"):
        worker.push_many([{"id": "😀" * 3}])

    with pytest.raises(JobError, match="job 0: id: has 9 bytes"):
        worker.push_many([{"id": 123_456_789}])
    assert ["😀" * 2, "12345678"] == [one.id for one in worker.push_many(jobs_of(["😀" * 2, "12345678"]))]


@pytest.mark.parametrize("given", [0, -1, 2**53, 10**30])
def test_e61_integers_are_their_text(app: Lowkiq, queue_name: str, given: int) -> None:
    """E-61: an int and its text are one id, of any size."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.push_many([{"id": given, "payload": 1}, {"id": str(given), "payload": 2}])
    app.drain()

    assert [{str(given): [1, 2]}] == notes.batches


class Stock(str, Enum):  # noqa: UP042 - the older form, which says something else of itself
    """Texts with names."""

    APPLE = "apple"


def test_e60_a_text_of_another_type_is_what_it_holds(app: Lowkiq, queue_name: str) -> None:
    """E-60: a member of an enumeration of texts is its text."""
    worker = declare(app, queue_name, Notes())

    (pushed,) = worker.push_many([{"id": Stock.APPLE}])

    assert ("apple", str) == (pushed.id, type(pushed.id))
    assert ["apple"] == [job.id for job in app.operate(worker).waiting.fetch([Stock.APPLE])]
    assert 1 == app.operate(worker).waiting.delete([Stock.APPLE])


class Shelf(IntEnum):
    """Numbers with names."""

    LEFT = 1


REFUSED = {"long": 10**5_000, "enum": Shelf.LEFT, "bool": True, "float": 1.5, "bytes": b"a", "half": "\ud800"}


@pytest.mark.parametrize("kind", REFUSED)
def test_e61_looks_and_actions_refuse_the_ids_that_a_push_refuses(app: Lowkiq, queue_name: str, kind: str) -> None:
    """E-61: what cannot be an id is refused with one error and one sentence, wherever it is given."""
    given: Any = REFUSED[kind]
    worker = declare(app, queue_name, Notes())
    queries, actions = app.operate(worker), app.operate(worker)
    ways: list[partial[Any]] = [
        partial(queries.waiting.fetch, [given]),
        partial(queries.morgue.fetch, [given]),
        partial(partial(queries.waiting.list, "id"), given, "+"),
        partial(actions.waiting.delete, [given]),
        partial(actions.morgue.requeue, [given]),
    ]
    with pytest.raises(JobError) as pushed:
        worker.push_many([{"id": given}])
    said = []
    for way in ways:
        with pytest.raises(JobError) as refused:
            way()
        said.append(str(refused.value))

    assert {str(pushed.value).removeprefix("job 0: ")} == set(said)


@pytest.mark.parametrize(
    "names", [("a", "a:processing"), ("a{b}", "a"), ("{", "}"), ("a%7Bb%7D", "a{b}"), ("ä", "a\u0308"), ("a b", "a+b")]
)
def test_e60_queue_names_cannot_forge_each_other(app: Lowkiq, queue_name: str, names: tuple[str, str]) -> None:
    """E-60, LB-18: whatever two queues are called, neither has a key of the other."""
    first, second = (
        declare(app, f"{queue_name} {name}", Notes(), shards_count=shards_count)
        for name, shards_count in zip(names, (2, 3), strict=True)
    )
    keys = [
        {key for shard in app.core.queues.agreed(worker).shards for key in shard.keys} for worker in (first, second)
    ]

    assert set() == keys[0] & keys[1]
    assert all(key.count("{") == key.count("}") == 1 for key in keys[0] | keys[1])


def test_e60_a_queue_name_of_any_text_works(app: Lowkiq) -> None:
    """E-60: a queue may be called anything that can be stored."""
    notes = Notes()
    for name in ("{}", "a:b", "день\n", "\x00", "*", "x" * 1_000, "a{b}c"):
        declare(app, f"{name}{uuid4().hex}", notes).push_many(jobs_of("a", payload=name))

    app.drain()

    assert 7 == len(notes.batches)
