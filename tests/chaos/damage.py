"""What a hand or a bug may do to a shard, kind by kind, and a shard that has something in each of its keys."""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeAlias

import msgspec
import redis

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.operate.acts.bulk_actions import prepare, steps
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.shard.keys import SHARD_KEYS, ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken
from tests.kit.stored import COUNTERS
from tests.kit.workers import declare

Do: TypeAlias = Callable[[redis.Redis, Callable[[str], str]], object]
"""Given the server and what tells a key of the shard by its name."""

ALIEN: Final = b"alien\xff\xfe"
"""An id that is no UTF-8; what is known of it has the same bytes inside."""
GARBAGE: Final = b"\xc1garbage"
PLACE: Final = b"\xc1\xda\xd2\x74\x80\x00\x00\x00\x00\x00\x00\x00\x00\x07"
ENTRY: Final = PLACE + b'"alien"'
FIRST: Final = struct.pack(">I", len(ENTRY)) + ENTRY
"""As it lies in a record that has more of them."""
PROGRESS: Final = b"p" + struct.pack(">I", 1) + b"1"
HEAD: Final = struct.pack(">dd", 1_700_000_000.0, -1.0)
IN_THE_BOX: Final = 9
"""More payloads of an id than its record takes."""


class Kind(msgspec.Struct, frozen=True):
    """One way to damage a shard. `lost`: bytes that must be found among what was set aside.

    `ruined`: ids whose payloads it destroys itself.
    """

    name: str
    do: Do
    lost: tuple[bytes, ...] = ()
    ruined: tuple[str, ...] = ()


RUINED: Final = {
    "jobs": ("retried", "suspect-2", "suspect-3", "good-1", "good-2", "few"),
    "box": ("several", "started"),
    "flight": ("suspect-1",),
}


@dataclass
class Patient:
    """A shard with jobs in every state, whose worker does what it is told."""

    app: Lowkiq
    clock: ManualClock
    admin: redis.Redis
    queue_name: str
    done: set[str] = field(default_factory=set)
    pushed: set[str] = field(default_factory=set)
    is_well: bool = False

    def __post_init__(self) -> None:
        self.worker: type[Worker] = declare(self.app, self.queue_name, self._perform, batch_size=3, max_retry_count=2)
        self.shard = ShardRef(self.queue_name, 1, 0)

    def _perform(self, batch: Batch) -> None:
        for job_id, payloads in batch.items():
            if not self.is_well:
                if job_id in {"dead", "retried"}:
                    batch.fail(job_id, f"{job_id} is broken")
                    continue
                if job_id.startswith("suspect"):
                    raise Broken("nobody is named")
            self.done |= set(payloads)

    def fill(self) -> Self:
        """Something in each key: the morgue, a retry, several payloads, suspects, one of them with a dead holder."""
        self._push("dead", "retried")
        for _ in range(3):
            self.app.drain()
            self.clock.advance(100.0)
        self._push("retried")
        self.app.drain()
        self._push(*["suspect-1"] * IN_THE_BOX, "suspect-2", "suspect-3")
        self.die_before_start()
        self._push(*["several"] * IN_THE_BOX, "few", "few", "good-1", "good-2", "started")
        self._start("started")
        return self

    def _start(self, job_id: str) -> None:
        """It becomes a started job that waits."""
        record: Any = self.admin.hget(self.key("jobs"), job_id)
        self.admin.zadd(self.key("box"), {_started(job_id.encode(), PROGRESS + record): 0.0})
        self.admin.hset(self.key("jobs"), job_id, b"p" + bytes(6))

    def die_before_start(self) -> None:
        """Drain, until the handler of a lone suspect is about to run."""
        mortal = Mortal(self.app)
        mortal.die_before("start")
        mortal.drain()

    def like(self, other: "Patient") -> Self:
        """With all that the other has by now."""
        with self.admin.pipeline(transaction=False) as copying:
            for here, there in zip(self.shard.keys, other.shard.keys, strict=True):
                copying.copy(there, here, replace=True)
            copying.execute()
        self.pushed, self.done = {*other.pushed}, {*other.done}
        return self

    def key(self, name: str) -> str:
        """A key of the shard."""
        return self.shard.key(name)

    def waiting(self) -> set[str]:
        """All payloads that have been pushed, but those that went to the morgue."""
        return self.pushed - {"dead 0", "retried 1"}

    def _push(self, *ids: str) -> None:
        """Each with a payload that no other has."""
        jobs = [{"id": job_id, "payload": f"{job_id} {len(self.pushed) + at}"} for at, job_id in enumerate(ids)]
        self.worker.push_many(jobs)
        self.pushed |= {job["payload"] for job in jobs}

    @property
    def queue(self) -> QueueOperations:
        """The queue, for an operator."""
        return self.app.operate(self.worker)

    def look(self) -> None:
        """At all that people can see."""
        queue, ids = self.queue, ["several", "few", "suspect-1", "good-1", "dead", "started"]
        queue.waiting.fetch(ids)
        queue.morgue.fetch(ids)
        queue.in_flight.fetch(ids)
        queue.in_flight.list()
        queue.waiting.list("id")
        queue.waiting.list()
        queue.waiting.list("retry_count")
        queue.morgue.list("id")
        queue.morgue.list()
        queue.waiting.search(prefix="s")
        queue.waiting.search(text="broken")
        queue.morgue.search(text="broken")
        queue.shards()
        queue.damaged()
        # That shows less of what is read in the same way.
        queue.glimpse().waiting.list("id")
        queue.glimpse().morgue.list("id")
        for job_id in ids:
            queue.explain(job_id)

    def act(self) -> None:
        """Do all that operators can do."""
        queue = self.queue
        sweep = prepare(queue.runner, "run_now", filter=IdFilter(error="broken"))
        for _ in steps(queue.runner, sweep):
            pass
        queue.pause(5.0)
        queue.resume()
        queue.in_flight.evict_holder(0, 1)
        queue.waiting.run_now(everything=True)
        queue.waiting.kill(everything=True)
        queue.waiting.delete(["good-1", "several"])
        queue.waiting.delete(filter={"least_count": "0"})
        queue.morgue.requeue(["dead"])
        queue.morgue.requeue(everything=True)
        queue.morgue.delete(["dead"])
        queue.morgue.delete(everything=True)
        queue.delete_damaged()

    def push_late(self) -> None:
        """What is pushed behind the damage."""
        self._push("late", "late", "several", "few", "retried")

    def push_after(self) -> None:
        """What is pushed when all is well again."""
        self._push("after", "several", "few")

    def drain(self) -> None:
        """By a process that has nothing to do with those before; what it fails at is told by an error of ours."""
        outlive(self.app, self.clock, *self.app.workers)
        self.clock.advance(100.0)
        self.app.drain()


class Ward:
    """Shards that are damaged, each in a way of its own, and a sound one, served by the same processes."""

    def __init__(self, sound: Patient, kinds: Sequence[Kind]) -> None:
        self.sound = sound
        beside = (sound.app, sound.clock, sound.admin)
        self.patients = [(kind, Patient(*beside, f"{sound.queue_name} {at}")) for at, kind in enumerate(kinds)]
        for kind, patient in self.patients:
            patient.like(sound)
            kind.do(patient.admin, patient.key)

    @property
    def all(self) -> list[Patient]:
        """The damaged ones, and the sound one."""
        return [self.sound, *(patient for _, patient in self.patients)]

    def look(self) -> None:
        """At all that people can see."""
        app = self.sound.app
        app.operate.stats()
        app.operate.metrics()
        with app.operate.overview() as seen:
            assert {patient.queue_name for patient in self.all} == {queue.name for queue in seen.queues}
        for _, patient in self.patients:
            patient.look()


def _of_the_wrong_type() -> Iterator[Kind]:
    for name in SHARD_KEYS:

        def a_string(admin: redis.Redis, key: Callable[[str], str], name: str = name) -> None:
            admin.set(key(name), GARBAGE)

        def a_list(admin: redis.Redis, key: Callable[[str], str], name: str = name) -> None:
            admin.delete(key(name))
            admin.rpush(key(name), GARBAGE)

        if name != "lease":
            yield Kind(f"{name} is a string", a_string, (GARBAGE,), RUINED.get(name, ()))
        # A test lets a lease end by deleting its key.
        yield Kind(f"{name} is a list", a_list, (GARBAGE,) if name != "lease" else (), RUINED.get(name, ()))


def _hset(name: str, value: bytes, job_id: bytes = b"several", *, due: bool = False) -> Do:
    def do(admin: redis.Redis, key: Callable[[str], str]) -> None:
        admin.hset(key(name), job_id, value)
        if due:
            admin.zadd(key("due"), {job_id: 1_700_000_000.0})

    return do


def _zadd(name: str, member: bytes, score: float = 1_700_000_000.0) -> Do:
    return lambda admin, key: admin.zadd(key(name), {member: score})


def _hdel(name: str, job_id: bytes) -> Do:
    return lambda admin, key: admin.hdel(key(name), job_id)


def _zrem(name: str, member: bytes) -> Do:
    return lambda admin, key: admin.zrem(key(name), member)


def _member(job_id: bytes, entry: bytes = ENTRY) -> bytes:
    return struct.pack(">I", len(job_id)) + job_id + entry


def _started(job_id: bytes, handed: bytes) -> bytes:
    return struct.pack(">I", (1 << 31) + len(job_id)) + job_id + handed


_HANDED: Final = {
    "nothing": b"",
    "no progress": b"s" + ENTRY,
    "truncated in a length": b"p\x00\x00",
    "truncated in its progress": b"p" + struct.pack(">I", 99) + b"s" + ENTRY,
    "without payloads": PROGRESS,
    "truncated in its place": PROGRESS + b"s\xc1\xda",
    "of no known kind": PROGRESS + b"x" + ENTRY,
}


def _started_jobs() -> Iterator[Kind]:
    for what, handed in _HANDED.items():
        yield Kind(f"a started job is {what}", _zadd("box", _started(b"alien", handed), 0.0), (handed,))
        if handed[:1] == b"p":
            yield Kind(f"one in flight is {what}", _hset("flight", HEAD + handed, b"alien"), (handed,))
    alien = _started(ALIEN, PROGRESS + b"s" + ENTRY)
    yield Kind("the id of a started job is no UTF-8", _zadd("box", alien, 0.0), (ALIEN, ENTRY))
    twice = _started(b"started", PROGRESS + b"z" + ENTRY)
    yield Kind("a started job is there twice", _zadd("box", twice, 0.0), (b"z" + ENTRY,))
    for kind in (b"m" + bytes(6), b"s" + ENTRY, b"p", b"p" + bytes(7), GARBAGE):
        yield Kind(f"the record of a started job is {kind!r}", _hset("jobs", kind, b"started"))
    scored = _started(b"alien", PROGRESS + b"s" + ENTRY)
    yield Kind("a started job has a score", _zadd("box", scored, 5.0))
    yield Kind("a started job has no record", _hdel("jobs", b"started"))
    yield Kind("a started job is not due", _zrem("due", b"started"))
    mark = b"p" + bytes(6)
    yield Kind("there is no started job under the id", _hset("jobs", mark, b"alien", due=True), (mark,))
    yield Kind("the record of several is that of a started job", _hset("jobs", mark))
    yield Kind("the progress of a dead job is garbage", _hset("morgue_errors", GARBAGE, b"\xffdead"))


def _no_utf8() -> Iterator[Kind]:
    yield Kind("an id in due alone is no UTF-8", _zadd("due", ALIEN), (ALIEN,))
    yield Kind("an id that waits is no UTF-8", _hset("jobs", b"s" + ENTRY, ALIEN, due=True), (ALIEN, b"s" + ENTRY))
    yield Kind("an id with several payloads is no UTF-8", _alien_several, (ALIEN, ENTRY))
    yield Kind("an id in the box alone is no UTF-8", _zadd("box", _member(ALIEN), 0.0), (ALIEN, ENTRY))
    yield Kind("an id in seen is no UTF-8", _hset("seen", PLACE, _member(ALIEN, b"x")))
    yield Kind("an id in flight is no UTF-8", _hset("flight", HEAD + b"s" + ENTRY, ALIEN), (ALIEN, ENTRY))
    for name in ("since", "retry", "suspects"):
        yield Kind(f"an id in {name} is no UTF-8", _zadd(name, ALIEN, 3.0))
    yield Kind("an id in the morgue is no UTF-8", _zadd("morgue", ALIEN, 3.0), (ALIEN,))
    yield Kind("dead payloads are of an id that is no UTF-8", _zadd("morgue_payloads", _member(ALIEN), 0.0), (ENTRY,))
    for name in ("errors", "morgue_errors", "failures"):
        yield Kind(f"an id in {name} is no UTF-8", _hset(name, b"\x90", ALIEN))
    yield Kind("an id in trouble is no UTF-8", _hset("trouble", b"\x80", ALIEN))


def _alien_several(admin: redis.Redis, key: Callable[[str], str]) -> None:
    admin.hset(key("jobs"), ALIEN, b"m" + bytes(6))
    admin.zadd(key("due"), {ALIEN: 1_700_000_000.0})
    admin.zadd(key("box"), {_member(ALIEN): 0.0, _member(ALIEN, ENTRY + b"2"): 0.0})


def _few(count: int, last: int, entries: bytes) -> bytes:
    return b"f" + struct.pack(">BH", count, last) + entries


_RECORDS: Final = {
    "garbage": GARBAGE,
    "empty": b"",
    "a truncated single": b"s\xc1\xda\xd2",
    "a truncated touched": b"t\x00\x00",
    "with an infinite score": b"s\xff\xf0" + bytes(12) + b'"x"',
    "few without a count": b"f",
    "few without payloads": b"f\x02\x00\x09",
    "few truncated in a length": _few(2, 5 + 2, b"\x00\x00" + ENTRY),
    "few truncated in a payload": _few(2, 5 + len(FIRST), struct.pack(">I", 99) + ENTRY + ENTRY),
    "few truncated in a place": _few(2, 5 + len(FIRST), FIRST + b"\xc1\xda"),
    "few with more than it counts": _few(2, 5 + 2 * len(FIRST), FIRST * 2 + ENTRY),
    "few with fewer than it counts": _few(3, 5 + len(FIRST), FIRST + ENTRY),
    "few with a single one": _few(1, 5, ENTRY),
    "few that misses its last": _few(2, 5 + len(FIRST) - 4, FIRST + ENTRY),
    "few whose last lies behind its end": _few(2, 0xFFFF, FIRST + ENTRY),
    "touched few and truncated": b"g\x00\x00",
    "touched few with fewer than it counts": b"g" + bytes(6) + _few(3, 11 + len(FIRST), FIRST + ENTRY)[1:],
}
_FLIGHTS: Final = {
    "garbage": GARBAGE,
    "empty": b"",
    "truncated in its head": HEAD[:12],
    "truncated behind its head": HEAD,
    "truncated in its place": HEAD + b"s\xc1\xda",
    "truncated in a length": HEAD + b"m" + struct.pack(">I", len(ENTRY)) + ENTRY + b"\x00\x00",
    "truncated in a payload": HEAD + b"m" + struct.pack(">I", len(ENTRY)) + ENTRY + struct.pack(">I", 99) + ENTRY,
    "of no known kind": HEAD + b"x" + ENTRY,
    "with no number as its time": struct.pack(">dd", float("nan"), -1.0) + b"s" + ENTRY,
    "with an infinite count": struct.pack(">dd", 1.0, float("-inf")) + b"s" + ENTRY,
}
_PACKED: Final = {
    "garbage": GARBAGE,
    "empty": b"",
    "truncated": b"\x82\xa5group",
    "a number": b"\x05",
    "of other parts": msgspec.msgpack.encode(
        {"group": 1, "crashes": "x", "chunk_limit": 0, "exit_count": "y", "left": "x", "ids": 3, "signature": 5}
    ),
}
_TROUBLES: Final = {
    **_PACKED,
    "crashes that are a number": msgspec.msgpack.encode({"crashes": 2}),
    "crashes that are numbers": msgspec.msgpack.encode({"crashes": [1, 2]}),
    "halved from nothing": msgspec.msgpack.encode({"halvings": ["nonce"]}),
    "counts of no payload": msgspec.msgpack.encode({"retry_counts": ["x", 2]}),
    "a payload without a count": msgspec.msgpack.encode({"retry_counts": [1]}),
    "endless counts": msgspec.msgpack.encode({"retry_counts": [1, float("inf")]}),
    "a run_alone that is no truth value": msgspec.msgpack.encode({"group": "", "run_alone": {}}),
    "counts that are none": msgspec.msgpack.encode({"retry_counts": "x"}),
}


def _records() -> Iterator[Kind]:
    for what, record in _RECORDS.items():
        # A score that is none does not keep the payload from being performed.
        lost = () if "score" in what else (record,)
        yield Kind(f"a waiting record is {what}", _hset("jobs", record, b"alien", due=True), lost)
    yield Kind("the mark of several is truncated", _hset("jobs", b"m\x00"))


def _flights() -> Iterator[Kind]:
    for what, record in _FLIGHTS.items():
        lost = () if b"number" in what.encode() or "infinite" in what else (record,)
        yield Kind(f"a flight record is {what}", _hset("flight", record, b"alien"), lost)
        ruin = _hset("flight", record, b"suspect-1")
        yield Kind(f"the flight record of suspect-1 is {what}", ruin, lost, ("suspect-1",))


def _packed() -> Iterator[Kind]:
    for what, packed in _TROUBLES.items():
        for job_id in (b"good-1", b"suspect-1", b"several", b"retried"):
            yield Kind(f"the trouble of {job_id.decode()} is {what}", _hset("trouble", packed, job_id))
    for what, packed in _PACKED.items():
        yield Kind(f"the groups are {what}", _every("groups", packed))
        yield Kind(f"the failures are {what}", _every("failures", packed))
        yield Kind(f"the answers to pushes are {what}", _every("pushes_even", packed))


def _values() -> Iterator[Kind]:
    yield Kind("the uses of a text are garbage", _hset("texts", GARBAGE, b"#w" + b"0" * 40))
    yield Kind("an error is garbage", _every("errors", GARBAGE))
    yield Kind("an error has no text", _every("errors", b"r0123"))
    yield Kind("an error in the morgue has no text", _every("morgue_errors", b"r0123"))
    yield Kind("a place in seen is garbage", _every("seen", GARBAGE))
    for what, member in {"garbage": GARBAGE, "short": b"\x00\x00", "": b""}.items():
        yield Kind(f"a member of the box is {what or 'empty'}", _zadd("box", member, 0.0), (member,))
        yield Kind(f"a member of the morgue is {what or 'empty'}", _zadd("morgue_payloads", member, 0.0), (member,))
    short = _member(b"several", b"\x00\x01")
    yield Kind("a payload in the box has no place", _zadd("box", short, 0.0), (b"\x00\x01",))
    yield Kind(
        "a payload in the morgue has no place", _zadd("morgue_payloads", _member(b"dead", b"\x00"), 0.0), (b"\x00",)
    )
    yield Kind("a member of the box has a score", _zadd("box", _member(b"several", ENTRY), 5.0))
    for name in ("due", "since", "retry", "suspects", "morgue"):
        for score in (float("inf"), float("-inf")):
            yield Kind(f"a number in {name} is {score}", _zadd(name, b"several", score))


def _every(name: str, value: bytes) -> Do:
    def do(admin: redis.Redis, key: Callable[[str], str]) -> None:
        fields: Any = admin.hkeys(key(name))
        for one in [*fields, b"good-1"]:
            admin.hset(key(name), one, value)

    return do


def _without_partners() -> Iterator[Kind]:
    yield Kind("an id is due without a record", _zadd("due", b"alone"), (b"alone",))
    yield Kind("an id has a record and no time", _zrem("due", b"several"))
    yield Kind("an id of several has no box", lambda admin, key: admin.delete(key("box")), (), ("several", "started"))
    yield Kind("an id in the box has no record", _forgotten)
    yield Kind("an id in the box has the record of a single one", _hset("jobs", b"s" + ENTRY))
    for name in ("since", "retry", "suspects"):
        yield Kind(f"an id in {name} does not wait", _zadd(name, b"alone", 1.0))
    yield Kind("an id in the morgue has no payloads", _zadd("morgue", b"alone", 1.0), (b"alone",))
    yield Kind("payloads in the morgue have no id there", _zrem("morgue", b"dead"))
    yield Kind("an id in the morgue has no error", _hdel("morgue_errors", b"dead"))
    gone = _hset("trouble", msgspec.msgpack.encode({"retry_counts": [999, 2]}), b"gone")
    yield Kind("failures of payloads that are gone are counted", gone)
    yield Kind("the shard has no generation", _hdel("meta", b"generation"))
    yield Kind("the dead holder had suspects together", _hset("meta", b"TOGETHER", b"claim_kind"))
    yield Kind("the lease has no end", lambda admin, key: admin.set(key("lease"), "1"))


def _forgotten(admin: redis.Redis, key: Callable[[str], str]) -> None:
    admin.hdel(key("jobs"), "several")
    admin.zrem(key("due"), "several")


_NUMBERS: Final = (
    "token",
    "call",
    "until",
    "acquired_at",
    "now",
    "arrival",
    "last_score",
    "max_len",
    "flight_since",
    "woken_until",
    "paused_until",
    "least_version",
    "timing_from",
    "morgue_bytes",
    "ttl",
    "generation",
    "push_minute",
    "push_turns",
    *COUNTERS,
    "payloads",
    "damaged",
)
_TEXTS: Final = ("nonce", "owner", "claim_kind", "claim_charge", "recovery", "abandoned", "action", "pace", "merge")


def _numbers_of_meta() -> Iterator[Kind]:
    for name in _NUMBERS:
        for value in (GARBAGE, b"nan", b"inf"):
            if (name, value) == ("paused_until", b"inf"):
                # That is a pause.
                continue
            yield Kind(f"meta {name} is {value!r}", _hset("meta", value, name.encode()))


def _texts_of_meta() -> Iterator[Kind]:
    for name in _TEXTS:
        for value in (GARBAGE, b"", b"\x05"):
            yield Kind(f"meta {name} is {value!r}", _hset("meta", value, name.encode()))


GROUPS: Final = {
    "keys of the wrong type": [*_of_the_wrong_type()],
    "ids": [*_no_utf8()],
    "waiting records": [*_records()],
    "records in flight": [*_flights()],
    "started jobs": [*_started_jobs()],
    "packed values": [*_packed()],
    "other values": [*_values()],
    "values without their partners": [*_without_partners()],
    "numbers of meta": [*_numbers_of_meta()],
    "texts of meta": [*_texts_of_meta()],
}
