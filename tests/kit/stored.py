"""A shard as it lies in Redis, in a form that can be compared."""

import struct
from collections import Counter
from collections.abc import Iterable
from hashlib import sha1
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import redis

from lowkiq_lambda.jobs.job import PLACE, decode_score
from lowkiq_lambda.store.shard.keys import ShardRef


class Entry(NamedTuple):
    """A payload in its place: those of an id are handed over in the order of these tuples."""

    score: float
    arrival: int
    payload: str

    @property
    def size(self) -> int:
        """Bytes that the limit of a claim counts."""
        return 14 + len(self.payload.encode())


State: TypeAlias = dict[str, Any]
_ZSETS: Final = ("due", "since", "retry", "suspects", "morgue")
_HASHES: Final = ("jobs", "seen", "errors", "trouble", "groups", "flight", "morgue_errors", "meta", "failures", "texts")
_LISTS: Final = ("box", "morgue_payloads")
_LETTERS: Final = {"errors": b"w", "morgue_errors": b"m"}
_DIGEST: Final = 40
_FLIGHT_HEAD: Final = struct.Struct(">dd")
_NO_ID: Final = b"\xff"
_OF_STARTED: Final = 1 << 31
"""Added to the length of an id in the box, where the member is a started job."""

COUNTERS: Final = (
    "done",
    "discarded",
    "cancelled",
    "expired",
    "retried",
    "dead",
    "blocked",
    "rejected",
    "returned",
    "checkpointed",
    "suspected",
    "recovered",
    "trimmed",
)


def stored(client: redis.Redis, shard: ShardRef) -> State:
    """The shard in Redis; AssertionError if its keys contradict each other."""
    return stored_and_seen(client, shard)[0]


def stored_and_seen(client: redis.Redis, shard: ShardRef) -> tuple[State, float]:
    """As `stored`, and the latest time that a call came with, as the shard has noted it: in one round trip."""
    pipe = client.pipeline(transaction=True)
    for name in _ZSETS:
        pipe.zrange(shard.key(name), 0, -1, withscores=True)
    for name in _HASHES:
        pipe.hgetall(shard.key(name))
    for name in _LISTS:
        pipe.zrange(shard.key(name), 0, -1)
    pipe.exists(shard.key("lease"))
    *raw, lease_key = pipe.execute()
    zsets = {name: {id_.decode(): at for id_, at in reply} for name, reply in zip(_ZSETS, raw, strict=False)}
    hashes = dict(zip(_HASHES, raw[len(_ZSETS) :], strict=False))
    started = dict(_started(member) for member in raw[-len(_LISTS)] if member[0] & 0x80)
    box, morgue = (_by_id(member for member in reply if not member[0] & 0x80) for reply in raw[-len(_LISTS) :])
    meta = {name.decode(): value for name, value in hashes["meta"].items()}
    flying = {id_.decode(): _flown(record) for id_, record in hashes["flight"].items()}
    flight = {id_: flown[:3] for id_, flown in flying.items()}
    errors, kept = (_errors(hashes[name], hashes["texts"], name) for name in ("errors", "morgue_errors"))
    morgue_errors = {id_.decode(): error.decode() for id_, error in kept.items() if id_[:1] != _NO_ID}
    dead_progress = {id_[1:].decode(): error for id_, error in kept.items() if id_[:1] == _NO_ID}
    _check_texts(hashes)
    trouble = {id_.decode(): msgspec.msgpack.decode(note) for id_, note in hashes["trouble"].items()}
    noted = {id_: note.pop("retry_counts", []) for id_, note in trouble.items()}
    waiting = _waiting(hashes["jobs"], box, {id_: entries for id_, (entries, _) in started.items()}, zsets)
    assert not started.keys() & flight.keys(), "what a started job was handed is in one place"
    dead_seen = {field[1:]: place for field, place in hashes["seen"].items() if field[:1] == _NO_ID}
    _check_seen({field: place for field, place in hashes["seen"].items() if field[:1] != _NO_ID}, box)
    _check_seen(dead_seen, {id_: entries for id_, entries in morgue.items() if len(entries) > 1})
    _check_sizes(raw[-1], morgue)
    assert morgue.keys() == zsets["morgue"].keys() == morgue_errors.keys()
    _check_arrivals(waiting, flight, morgue)
    state: State = {
        "waiting": waiting,
        "flight": flight,
        "progress": {
            **{id_: progress for id_, (_, progress) in started.items()},
            **{id_: flown[3] for id_, flown in flying.items() if flown[3] is not None},
        },
        "dead_progress": {
            id_: (entry_of(text[:PLACE])[:2], _opaque(text[PLACE:])) for id_, text in dead_progress.items()
        },
        "counts": _counts(waiting, flight, noted),
        "errors": {id_.decode(): error.decode() for id_, error in errors.items()},
        "failures": {id_.decode(): _failures(packed) for id_, packed in hashes["failures"].items()},
        "trouble": {id_: note for id_, note in trouble.items() if note},
        "suspects": zsets["suspects"],
        "groups": {name.decode(): _group(packed) for name, packed in hashes["groups"].items()},
        "morgue": {id_: (at, morgue_errors[id_], morgue[id_]) for id_, at in zsets["morgue"].items()},
        "counters": {name: int(meta.get(name, 0)) for name in COUNTERS},
        "morgue_bytes": _morgue_bytes(meta, raw[-1], hashes),
        "arrival": int(meta.get("arrival", 0)),
        "paused_until": float(meta.get("paused_until", 0)),
        "lease": (int(meta.get("token", 0)), float(meta.get("until", 0)), bool(lease_key)),
        "flight_since": float(meta["flight_since"]) if flight else None,
    }
    return state, float(meta.get("now", 0))


def entry_of(stored_entry: bytes) -> Entry:
    """A stored entry as the model has it."""
    place, payload = stored_entry[:PLACE], stored_entry[PLACE:]
    return Entry(decode_score(place[:8]), int.from_bytes(place[8:]), payload.decode())


def _waiting(
    jobs: dict[bytes, bytes],
    box: dict[str, list[Entry]],
    started: dict[str, list[Entry]],
    zsets: dict[str, dict[str, float]],
) -> State:
    waiting = {}
    for id_, record in ((key.decode(), value) for key, value in jobs.items()):
        kind, touched, entries = record[:1], 0, box.get(id_, [])
        if kind not in {b"s", b"f"}:
            touched = int.from_bytes(record[1:7])
        assert (kind == b"p") == (id_ in started), f"{id_!r} is a started job in one place only"
        if kind not in {b"m", b"p"}:
            assert not entries, f"the box holds payloads of {id_!r}, whose record has them"
            entries = _few(record) if kind in {b"f", b"g"} else [entry_of(record[1 if kind == b"s" else 7 :])]
        assert entries or id_ in started, f"{id_!r} waits without payloads"
        waiting[id_] = (
            entries,
            zsets["due"][id_],
            zsets["retry"].get(id_, -1.0),
            zsets["since"].get(id_),
            touched,
            started.get(id_, []),
        )
    assert zsets["due"].keys() == waiting.keys()
    for part in (box, started, zsets["retry"], zsets["since"]):
        assert part.keys() <= waiting.keys()
    return waiting


def as_handed(record: bytes) -> bytes:
    """A record of a few payloads as it is handed over, where the last has its length, too."""
    at = 1 if record[:1] == b"f" else 7
    (last,) = struct.unpack_from(">H", record, at + 1)
    return b"m" + record[at + 3 : last - 1] + struct.pack(">I", len(record) - last + 1) + record[last - 1 :]


def _few(record: bytes) -> list[Entry]:
    entries, _ = _handed(as_handed(record))
    assert 2 <= len(entries) == record[1 if record[:1] == b"f" else 7]
    assert entries == sorted(entries)
    return entries


def _counts(waiting: State, flight: State, noted: dict[str, list[float]]) -> dict[int, float]:
    """The retry_count of each payload that has one; a note only where it tells more than the id's own count."""
    counts = {entries[0].arrival: count for entries, _, count in flight.values() if count >= 0}
    oldest = {id_: (handed or entries)[0].arrival for id_, (entries, *_, handed) in waiting.items()}
    for id_, (_, _, retry_count, *_) in waiting.items():
        if not noted.get(id_) and retry_count >= 0:
            counts[oldest[id_]] = retry_count
    for id_, flat in noted.items():
        of_id = {int(arrival): count for arrival, count in zip(flat[::2], flat[1::2], strict=True)}
        assert sorted(of_id) == list(of_id)
        if flat and id_ in waiting:
            assert of_id != {oldest[id_]: waiting[id_][2]}
        counts |= of_id
    return counts


def _check_seen(seen: dict[bytes, bytes], box: dict[str, list[Entry]]) -> None:
    # Where payloads are not merged there is no such index.
    found = set(seen.values())
    places = {one.arrival for entries in box.values() for one in entries}
    assert not seen or {int.from_bytes(place[8:]) for place in found} == places
    assert not seen or len(seen) == sum(map(len, box.values()))


def _check_sizes(members: Iterable[bytes], morgue: dict[str, list[Entry]]) -> None:
    """Of each id with several payloads in the morgue it is noted how many they are."""
    noted = {member[5:].decode(): int.from_bytes(member[1:5]) for member in members if member[:1] == _NO_ID}
    assert {id_: len(entries) for id_, entries in morgue.items() if len(entries) > 1} == noted


def _check_arrivals(waiting: State, flight: State, morgue: dict[str, list[Entry]]) -> None:
    """Two ids share no arrival number: more keys go by that alone."""
    of_ids: dict[int, set[str]] = {}
    lists = [(id_, one[0] + one[-1]) for id_, one in waiting.items()]
    lists += [(id_, one[0]) for id_, one in flight.items()] + list(morgue.items())
    for id_, entries in lists:
        for entry in entries:
            of_ids.setdefault(entry.arrival, set()).add(id_)
    assert all(len(ids) == 1 for ids in of_ids.values())


def _by_id(members: Iterable[bytes]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for member in members:
        end = 4 + int.from_bytes(member[:4])
        found.setdefault(member[4:end].decode(), []).append(entry_of(member[end:]))
    return found


def _flown(record: bytes) -> tuple[list[Entry], float, float, str | None]:
    due_at, retry_count = _FLIGHT_HEAD.unpack_from(record)
    entries, progress = _handed(record[16:])
    return entries, due_at, retry_count, progress


def _opaque(progress: bytes) -> str:
    return progress.decode(errors="backslashreplace")


def _handed(record: bytes) -> tuple[list[Entry], str | None]:
    """What an id is handed, and its progress where it is a started job."""
    if record[:1] == b"p":
        end = 5 + int.from_bytes(record[1:5])
        entries, _ = _handed(record[end:])
        return entries, _opaque(record[5:end])
    kind, rest, entries = record[:1], record[1:], []
    if kind == b"s":
        return [entry_of(rest)], None
    while rest:
        size = int.from_bytes(rest[:4])
        entries.append(entry_of(rest[4 : 4 + size]))
        rest = rest[4 + size :]
    return entries, None


def _started(member: bytes) -> tuple[str, tuple[list[Entry], str]]:
    end = 4 + int.from_bytes(member[:4]) - _OF_STARTED
    entries, progress = _handed(member[end:])
    assert progress is not None
    return member[4:end].decode(), (entries, progress)


def _group(packed: bytes) -> tuple[Any, ...]:
    group = msgspec.msgpack.decode(packed)
    # Lua's msgpack has one form for an empty list and an empty map.
    ids = group["ids"] or []
    return group["left"], group.get("signature"), group.get("error"), ids, group.get("systemic", False)


def _failures(packed: bytes) -> list[tuple[float, float, str, str]]:
    failures: list[tuple[float, float, str, str]] = []
    for at, retry_count, *more in msgspec.msgpack.decode(packed):
        brief, rule = [*more, None, ""][:2] if not more else [*more, ""][:2]
        failures.append((at, retry_count, brief or failures[-1][2], rule or ""))
    return failures


def _errors(found: dict[bytes, bytes], texts: dict[bytes, bytes], name: str) -> dict[bytes, bytes]:
    return {id_: _error(stored, texts, _LETTERS[name]) for id_, stored in found.items()}


def _error(stored: bytes, texts: dict[bytes, bytes], letter: bytes) -> bytes:
    kind, rest = stored[:1], stored[1:]
    assert kind in {b"s", b"r"}
    return rest if kind == b"s" else rest[_DIGEST:] + texts[letter + rest[:_DIGEST]]


def _check_texts(hashes: dict[str, dict[bytes, bytes]]) -> None:
    """Each text is there once, for as many ids as are noted, and none without an id."""
    uses = Counter(
        letter + stored[1 : 1 + _DIGEST]
        for name, letter in _LETTERS.items()
        for stored in hashes[name].values()
        if stored[:1] == b"r"
    )
    texts = hashes["texts"]
    assert {b"#" + name: b"%d" % times for name, times in uses.items()} == {
        name: times for name, times in texts.items() if name[:1] == b"#"
    }
    assert uses.keys() == {name for name in texts if name[:1] != b"#"}
    assert all(name[1:].decode() == sha1(texts[name], usedforsecurity=False).hexdigest() for name in uses)


def _morgue_bytes(meta: dict[str, bytes], members: Iterable[bytes], hashes: dict[str, dict[bytes, bytes]]) -> int:
    """What the shard has counted; AssertionError where what lies there is another number of bytes."""
    texts = sum(len(text) for name, text in hashes["texts"].items() if name[:1] == b"m")
    ids = hashes["morgue_errors"].keys()
    noted = [msgspec.msgpack.decode(packed) for id_, packed in hashes["failures"].items() if id_ in ids]
    failures = sum(16 + sum(len(brief.encode()) for brief in briefs if brief) for one in noted for _, _, *briefs in one)
    errors = sum(map(len, hashes["morgue_errors"].values()))
    counted = int(meta.get("morgue_bytes", 0))
    assert counted == sum(len(member) for member in members if member[:1] != _NO_ID) + errors + texts + failures
    return counted
