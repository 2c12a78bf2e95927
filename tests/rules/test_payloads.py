"""Payloads: any JSON, written and read by a codec that runs no code (E-62, L-14, LB-29)."""

import math
import pickle
from collections import OrderedDict
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

import lowkiq_lambda
from lowkiq_lambda import JobError, Lowkiq
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.orders import OrderChanged
from tests.kit.workers import declare, jobs_of, shard_of


def test_l14_payload_is_any_json(app: Lowkiq, queue_name: str) -> None:
    """L-14: a payload comes back as it was, whatever JSON value it is."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    payloads: list[object] = [None, True, False, 0, -1, 1.5, 2**60, "", "день 😀 \x00", [], {}, [1, [2, {"k": [None]}]]]

    worker.push_many({"id": "a", "payload": payload, "score": n} for n, payload in enumerate(payloads))
    app.drain()

    assert payloads == notes.last.payloads
    assert [type(payload) for payload in payloads] == [type(payload) for payload in notes.last.payloads]


def test_l14_codec_is_pluggable(make_app: MakeApp, queue_name: str) -> None:
    """L-14, LN-3: `dump_payload` and `load_payload` take the place of JSON."""
    app = make_app(
        dump_payload=lambda payload: str(payload).upper().encode(), load_payload=lambda dumped: dumped.decode()
    )
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.push_many([{"id": "a", "payload": "loud"}])
    app.drain()

    assert [{"a": ["LOUD"]}] == notes.batches


class Level(IntEnum):
    """An int that JSON would not give back."""

    LOW = 1


class OwnText(str):
    """A str that JSON would not give back."""

    __slots__ = ()


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    outer: list[Any] = []
    for _ in range(depth):
        outer = [outer]
    return outer


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (math.nan, "JSON has no form for nan"),
        (math.inf, "JSON has no form for inf"),
        ({"a": [1, {"b": -math.inf}]}, r"at \.a\[1\]\.b: JSON has no form for -inf"),
        (b"bytes", "JSON has no form for bytes"),
        (bytearray(b"x"), "JSON has no form for bytearray"),
        ({"at": datetime(2026, 1, 1, tzinfo=UTC)}, r"at \.at: JSON has no form for datetime"),
        (date(2026, 1, 1), "JSON has no form for date"),
        ([Decimal("1.5")], r"at \[0\]: JSON has no form for Decimal"),
        ({"tags": {"a"}}, r"at \.tags: JSON has no form for set: give a list instead$"),
        (OrderChanged("paid"), r"JSON has no form for OrderChanged: give a dict .*: Worker\[OrderChanged\]$"),
        ([OrderChanged("paid")], r"at \[0\]: JSON has no form for OrderChanged: give a dict instead$"),
        (frozenset(), "JSON has no form for frozenset"),
        (UUID(int=1), "JSON has no form for UUID"),
        (object(), "JSON has no form for object"),
        (1j, "JSON has no form for complex"),
        (Level.LOW, "JSON has no form for Level"),
        ({"text": OwnText("x")}, r"at \.text: JSON has no form for OwnText"),
        ({1: "a"}, "the key 1 is not a text, as JSON has it: write '1'"),
        ({"a": {None: 1}}, r"at \.a: the key None is not a text"),
        ({OwnText("k"): 1}, "the key 'k' is not a text"),
        ("\ud800", r"'\\ud800' does not come back"),
        ({"a": "x\udfff"}, r"at \.a: .* does not come back"),
        ({"\ud800": 1}, "the key .* has half of a surrogate pair"),
        (nested(700), "is nested too deeply"),
        (nested(100_000), "is nested too deeply"),
    ],
)
def test_e62_what_json_does_not_give_back_is_refused_with_its_path(
    app: Lowkiq, queue_name: str, payload: object, why: str
) -> None:
    """E-62: no value is silently turned into null or a text: the error names where it stands."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=f"job 1: payload: {why}") as caught:
        worker.push_many([{"id": "fine"}, {"id": "a", "payload": payload}])

    assert (1, "payload") == (caught.value.position, caught.value.field)
    assert {} == app.drain()


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: int


@pytest.mark.parametrize(
    ("payload", "delivered"),
    [
        ((1, 2), [1, 2]),
        ({"pair": Pair(1, 2)}, {"pair": [1, 2]}),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (-0.0, -0.0),
        (1.0, 1.0),
        (5e-324, 5e-324),
        (1.7976931348623157e308, 1.7976931348623157e308),
        (2**64, 2**64),
        (-(10**40), -(10**40)),
        ({"": {"": ""}}, {"": {"": ""}}),
        (nested(200), nested(200)),
        ("\x00\u2028\uffff😀", "\x00\u2028\uffff😀"),
    ],
)
def test_e62_what_json_gives_back_passes(app: Lowkiq, queue_name: str, payload: object, delivered: object) -> None:
    """E-62: a payload is delivered equal and of the same types; tuples pass as lists."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.push_many([{"id": "a", "payload": payload}])
    app.drain()

    assert repr(delivered) == repr(notes.batches[0]["a"][0])


def test_e62_payloads_have_a_limit(make_app: MakeApp, queue_name: str) -> None:
    """E-62: `max_payload_bytes` is checked before Redis is asked; at the limit a payload passes."""
    app, notes = make_app(max_payload_bytes=100), Notes()
    worker = declare(app, queue_name, notes)

    with pytest.raises(JobError, match="job 0: payload: has 101 bytes, more than max_payload_bytes=100"):
        worker.push_many([{"id": "a", "payload": "x" * 99}])
    worker.push_many([{"id": "a", "payload": "x" * 98}])
    app.drain()

    assert [{"a": ["x" * 98]}] == notes.batches


def test_e62_a_payload_of_five_megabytes_passes(app: Lowkiq, queue_name: str) -> None:
    """E-62: a payload larger than a whole claim may carry is still delivered."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=5)

    worker.push_many([{"id": "a", "payload": "x" * 5_000_000}, {"id": "b"}])
    app.drain()

    assert [5_000_000, 0] == sorted((len(p) for batch in notes.batches for (p,) in batch.values()), reverse=True)


@pytest.mark.parametrize("dumped", ["text", None, 5])
def test_a_codec_must_give_bytes(make_app: MakeApp, queue_name: str, dumped: object) -> None:
    """What a codec of the user's own does wrong is an error of the job, before anything is written."""
    app = make_app(dump_payload=lambda _payload: dumped, load_payload=bytes.decode)

    with pytest.raises(JobError, match="job 0: payload: dump_payload must return bytes, not"):
        declare(app, queue_name, Notes()).push_many([{"id": "a"}])


def test_a_codec_that_raises_is_an_error_of_the_job(make_app: MakeApp, queue_name: str) -> None:
    """The codec's own error is named and kept as the cause."""
    app = make_app(dump_payload=lambda payload: bytes([payload]), load_payload=list)

    with pytest.raises(JobError, match="job 0: payload: dump_payload raised ValueError") as caught:
        declare(app, queue_name, Notes()).push_many([{"id": "a", "payload": 1_000}])

    assert isinstance(caught.value.__cause__, ValueError)


class Exploit:
    """What would run code if it were unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return raise_it, ("exploited",)


def raise_it(text: str) -> None:
    """The code that must not run."""
    raise SystemExit(text)


def test_lb29_nothing_read_from_redis_runs_code(app: Lowkiq, queue_name: str) -> None:
    """LB-29, P10: whoever can write to Redis can spoil a payload, and no more."""
    notes = Notes()
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many(jobs_of("a"))
    key = shard_of(app, worker, "a").key("jobs")
    record = app.core.backend.client.hget(key, "a")
    assert isinstance(record, bytes)
    bomb = pickle.dumps(Exploit())
    app.core.backend.client.hset(key, "a", record[:15] + bomb)

    assert {"failed": 1, "dead": 1} == app.drain()
    assert [bomb] == [payload for job in notes.dead for payload, _ in job.payloads]
    with pytest.raises(SystemExit, match="exploited"):
        pickle.loads(bomb)  # noqa: S301 - to show that it would


def test_lb29_the_library_knows_no_pickle() -> None:
    """LB-29: no module reads or writes objects that carry code."""
    sources = Path(lowkiq_lambda.__file__).parent.rglob("*.py")

    assert [] == [str(path) for path in sources for word in ("pickle", "marshal", "shelve") if word in path.read_text()]
