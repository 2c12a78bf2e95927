"""Items of tasks as they lie in the keys of a shard, and what must hold of them at any time."""

import os
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import redis

from lowkiq_lambda import Pushed, Worker
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.jobs.job import ItemRef
from lowkiq_lambda.store.shard.keys import TRACKING, ShardRef
from tests.kit.stored import as_handed

REF: Final = 16
TASK: Final = 12
OPEN: Final = "er"
"""Statuses of items that wait or run."""
REASONS: Final = {
    1: "failed in company",
    2: "interrupted",
    3: "its process ended",
    4: "goes on later",
    5: "killed by an operator",
    6: "requeued",
    7: "blocked",
    8: "with its head",
    9: "expired",
    10: "edited",
    11: "put back",
}


_OF_REF: Final = re.compile(rb"(\xa1w\xb0).{16}", re.DOTALL)


class Item(NamedTuple):
    """A row: its status letter, its id, how often it came to an end, and what it was told."""

    status: str
    id: str
    attempts: int = 0
    messages: tuple[str, ...] = ()


class TaskOfTests:
    """A task without a record, whose items a test pushes. Items go by their labels."""

    def __init__(self, worker: type[Worker], admin: redis.Redis) -> None:
        self.id = os.urandom(TASK)
        self._worker = worker
        self._admin = admin
        self._numbers = 0
        self._pushed: list[Mapping[str, Any]] = []

    def push_many(self, *jobs: tuple[Any, Any, str], **fields: Any) -> list[Pushed]:
        """Jobs of (id, payload, label), all with the same more fields."""
        self._pushed = [
            {"id": id_, "payload": payload, "item": self.ref(label), **fields} for id_, payload, label in jobs
        ]
        return self.push_again()

    def push_again(self) -> list[Pushed]:
        """The last push once more, as if nobody knew that it was applied."""
        return self._worker.push_many(self._pushed)

    def ref(self, label: str) -> ItemRef:
        """The next item."""
        self._numbers += 1
        return ItemRef(self.id, self._numbers, label)

    @property
    def items(self) -> dict[str, Item]:
        """The items, by label; AssertionError where the shard does not hold together."""
        shard = ShardRef(self._worker.queue_name, count_of(self._worker), 0, features=(TRACKING,))
        return {label: item for (task, label), item in check_items(self._admin, shard).items() if task == self.id}

    @property
    def statuses(self) -> dict[str, str]:
        """The letters alone."""
        return {label: item.status for label, item in self.items.items()}

    @property
    def is_in_use(self) -> bool:
        """Whether the shard says that something in it is tracked."""
        shard = ShardRef(self._worker.queue_name, count_of(self._worker), 0)
        return b"tracking" in (self._admin.hget(shard.key("meta"), "in_use") or b"")


def check_items(admin: redis.Redis, shard: ShardRef) -> dict[tuple[bytes, str], Item]:
    """All items of the shard by task and label. Raises AssertionError where they contradict each other, or the jobs.

    Each ref stands at exactly one arrival number, that of one stored entry; an entry lies in exactly one of waiting,
    flight and morgue; an open item has a payload, and its status tells where that lies.
    """
    shard = shard.using((TRACKING,))
    pipe = admin.pipeline(transaction=True)
    for name in ("refs", "rows", "jobs", "flight", "meta"):
        pipe.hgetall(shard.key(name))
    for name in ("items", "box", "morgue_payloads"):
        pipe.zrange(shard.key(name), 0, -1)
    refs, rows, jobs, flight, meta, index, box, morgue = pipe.execute()
    places = _places(jobs, box, flight, morgue)
    kept = _refs_by_arrival(refs)
    counted = {name: int(value) for name, value in rows.items() if len(name) == TASK + 1}
    assert all(name[:1] == b"v" and value > 0 for name, value in counted.items())
    read = {ref: _row(packed) for ref, packed in rows.items() if len(ref) == REF}
    assert sorted(index) == sorted(ref[:TASK] + row["s"].encode() + ref[TASK:] for ref, row in read.items())
    for arrival, of in kept.items():
        assert arrival in places, "a ref stands at an entry that is there"
        # A ref without a row is one of a task that is forgotten.
        for ref in read.keys() & of:
            assert read[ref]["i"] == places[arrival][1], "an item is where its id is"
            assert read[ref]["s"] == places[arrival][0], "its status tells where its payload lies"
    held = {ref for of in kept.values() for ref in of}
    assert {ref for ref, row in read.items() if row["s"] in OPEN} <= held, "an open item has a payload"
    assert (b"tracking" in meta.get(b"in_use", b"")) == bool(refs)
    return {(ref[:TASK], row.get("k", "")): _item(row) for ref, row in read.items()}


def refs_of(admin: redis.Redis, shard: ShardRef) -> dict[int, list[bytes]]:
    """The refs that stand at each arrival number."""
    found: Any = admin.hgetall(shard.using((TRACKING,)).key("refs"))
    return _refs_by_arrival(found)


def _refs_by_arrival(refs: Mapping[bytes, bytes]) -> dict[int, list[bytes]]:
    kept = {}
    for arrival, text in refs.items():
        own = text[len(text) % REF :]
        assert text[: len(text) % REF] in {b"", b"*"}
        kept[int.from_bytes(arrival)] = [own[at : at + REF] for at in range(0, len(own), REF)]
    everything = [ref for of in kept.values() for ref in of]
    assert len(everything) == len(set(everything)), "a ref stands at one arrival number"
    return kept


def _places(
    jobs: Mapping[bytes, bytes], box: Iterable[bytes], flight: Mapping[bytes, bytes], morgue: Iterable[bytes]
) -> dict[int, tuple[str, str]]:
    """The status of what lies at each arrival number, and its id."""
    found: list[tuple[int, str, str]] = []
    for id_, record in jobs.items():
        if record[:1] in {b"s", b"t"}:
            found.append((_arrival(record[1 if record[:1] == b"s" else 7 :]), "e", id_.decode()))
        elif record[:1] in {b"f", b"g"}:
            found += [(at, "e", id_.decode()) for at in _handed(as_handed(record))]
    for status, members in (("e", box), ("x", morgue)):
        for member in members:
            size = int.from_bytes(member[:4])
            is_started, size = size >> 31, size & 0x7FFF_FFFF
            owner, rest = member[4 : 4 + size].decode(), member[4 + size :]
            found += [(at, status, owner) for at in (_handed(rest) if is_started else [_arrival(rest)])]
    for id_, record in flight.items():
        found += [(at, "r", id_.decode()) for at in _handed(record[struct.calcsize(">dd") :])]
    places = {at: (status, id_) for at, status, id_ in found}
    assert len(places) == len(found), "an entry lies in one place"
    return places


def _handed(record: bytes) -> list[int]:
    if record[:1] == b"p":
        record = record[5 + int.from_bytes(record[1:5]) :]
    if record[:1] == b"s":
        return [_arrival(record[1:])]
    arrivals, at = [], 1
    while at < len(record):
        arrivals.append(_arrival(record[at + 4 :]))
        at += 4 + int.from_bytes(record[at : at + 4])
    return arrivals


def _arrival(entry: bytes) -> int:
    return int.from_bytes(entry[8:14])


def _row(packed: bytes) -> dict[str, Any]:
    # Lua's msgpack has one form for bytes and for texts, and a ref is no UTF-8.
    row: dict[str, Any] = msgspec.msgpack.decode(_OF_REF.sub(rb"\1" + b"?" * REF, packed))
    return row


def _item(row: Mapping[str, Any]) -> Item:
    # Of a line without a reason or a text the status says all.
    lines = row.get("m", ())[1::2]
    texts = (REASONS[one] if isinstance(one, int) else one[1:] for one in lines)
    return Item(row["s"], row["i"], row["n"], tuple(text for text in texts if text))
