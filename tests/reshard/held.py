"""What a queue holds, whatever shards it lies in: equal where nothing was lost, or added, or has changed its order."""

from collections.abc import Sequence
from typing import Any

import redis

from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.stored import Entry, State, stored


def held(client: redis.Redis, shards: Sequence[ShardRef]) -> State:
    """The content of all the shards; AssertionError where the keys of one contradict each other.

    Entries are told without their arrival numbers, which a move shifts, in the order that these give them.
    """
    together: dict[str, Any] = {name: {} for name in ("waiting", "flight", "morgue", "troubles", "progress")}
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
            assert job_id not in together["morgue"], f"{job_id!r} is buried in two shards"
            buried = state["buried_progress"].get(job_id)
            together["morgue"][job_id] = (at, error, [*map(_told, entries)], buried and (buried[0][0], buried[1]))
        for name in ("errors", "failures", "suspects", "trouble"):
            for job_id, what in state[name].items():
                together["troubles"][name, job_id] = _proving_nothing(what) if name == "trouble" else what
        together["flight"] |= state["flight"]
        together["progress"] |= state["progress"]
        for name, count in state["counters"].items():
            counters[name] = counters.get(name, 0) + count
    # The group of a suspect that failed in company may be all that it had.
    troubles = {name: what for name, what in together["troubles"].items() if what != {}}
    return {**together, "troubles": troubles, "counters": counters}


def _told(entry: Entry) -> tuple[float, str]:
    return entry.score, entry.payload


def _proving_nothing(trouble: dict[str, Any]) -> dict[str, Any]:
    """What proves a group systemic stays behind."""
    return {name: what for name, what in trouble.items() if name != "group" or what == ""}
