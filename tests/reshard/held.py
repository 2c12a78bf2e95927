"""What a queue holds, whatever shards it lies in: equal where nothing was lost, or added, or has changed its order."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import redis

from lowkiq_lambda.store.shard.keys import EXPIRY, FEATURES, HEADERS, RECEIPTS, ShardRef
from tests.kit.stored import Entry, State, stored
from tests.kit.tracking import check_items

Place: TypeAlias = tuple[str, str, int]

ARRIVAL = 6
"""Bytes: other fields tell that a move has brought headers."""
KINDS = ("waiting", "flight", "morgue", "troubles", "progress", "items", "headers", "expiries", "receipts")


def held(client: redis.Redis, shards: Sequence[ShardRef]) -> State:
    """The content of all the shards; AssertionError where the keys of one contradict each other.

    Entries are told without their arrival numbers, which a move shifts, in the order that these give them.
    """
    together: dict[str, Any] = {name: {} for name in KINDS}
    counters: dict[str, int] = {}
    for shard in shards:
        state = stored(client, shard)
        for job_id, (entries, due, retry, since, touched, started) in state["waiting"].items():
            newest = max(entry.arrival for entry in (*entries, *started))
            counted = [(*_told(entry), state["counts"].get(entry.arrival)) for entry in entries]
            begun = [(*_told(entry), state["counts"].get(entry.arrival)) for entry in started]
            of_id = (counted, due, retry, since, touched > newest, begun)
            assert job_id not in together["waiting"], f"{job_id!r} waits in two shards"
            together["waiting"][job_id] = of_id
        for job_id, (at, error, entries) in state["morgue"].items():
            assert job_id not in together["morgue"], f"{job_id!r} is dead in two shards"
            dead = state["dead_progress"].get(job_id)
            together["morgue"][job_id] = (at, error, [*map(_told, entries)], dead and (dead[0][0], dead[1]))
        for name in ("errors", "failures", "suspects", "trouble"):
            for job_id, what in state[name].items():
                together["troubles"][name, job_id] = _proving_nothing(what) if name == "trouble" else what
        together["flight"] |= state["flight"]
        together["progress"] |= state["progress"]
        places = _places(state)
        together["items"] |= check_items(client, shard)
        together["headers"] |= _by_place(_headers(client, shard), places)
        together["expiries"] |= _by_place(_expiries(client, shard), places)
        together["receipts"] |= _receipts(client, shard)
        for name, count in state["counters"].items():
            counters[name] = counters.get(name, 0) + count
    # The group of a suspect that failed in company may be all that it had.
    troubles = {name: what for name, what in together["troubles"].items() if what != {}}
    return {**together, "troubles": troubles, "counters": counters}


def _places(state: State) -> dict[int, Place]:
    """Which entry of which id has an arrival number: the first that waits, the second, and so on, or is dead."""
    entries = [("waits", job_id, [*waits[0], *waits[5]]) for job_id, waits in state["waiting"].items()]
    entries += [("dead", job_id, dead[2]) for job_id, dead in state["morgue"].items()]
    return {
        entry.arrival: (where, job_id, sorted(one.arrival for one in of_id).index(entry.arrival))
        for where, job_id, of_id in entries
        for entry in of_id
    }


def _receipts(client: redis.Redis, shard: ShardRef) -> dict[bytes, float]:
    found: Any = client.zrange(shard.using((RECEIPTS,)).key("receipts"), 0, -1, withscores=True)
    return dict(found)


def _headers(client: redis.Redis, shard: ShardRef) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for name in FEATURES[HEADERS]:
        kept: Any = client.hgetall(shard.using((HEADERS,)).key(name))
        found |= {int.from_bytes(field): packed for field, packed in kept.items() if len(field) == ARRIVAL}
    return found


def _expiries(client: redis.Redis, shard: ShardRef) -> dict[int, bytes]:
    kept: Any = client.hgetall(shard.using((EXPIRY,)).key("expiries"))
    return {int.from_bytes(field): packed for field, packed in kept.items()}


def _by_place(headers: dict[int, bytes], places: dict[int, Place]) -> dict[Place, bytes]:
    """The headers of entries that are there: those of others go with their day."""
    return {places[arrival]: packed for arrival, packed in headers.items() if arrival in places}


def _told(entry: Entry) -> tuple[float, str]:
    return entry.score, entry.payload


def _proving_nothing(trouble: dict[str, Any]) -> dict[str, Any]:
    """What proves a group systemic stays behind."""
    return {name: what for name, what in trouble.items() if name != "group" or what == ""}
