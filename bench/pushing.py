"""What each part of a push costs the server: small scripts that do one thing more each, and ours.

The last but one keeps the same promises for plain jobs and does nothing else: payloads in the order of their scores,
equal ones merged, a push that comes twice applied once.
"""

import struct
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from bench.blank import PUSHED_AT_ONCE
from bench.here import new_queue
from bench.usage import processor_time
from lowkiq_lambda import Config, Lowkiq
from tests.kit.servers import Server

_DUE: Final = "redis.call('ZADD', KEYS[1], unpack(times))"
_RECORDS: Final = "redis.call('HSET', KEYS[2], unpack(records))"
_EACH: Final = """
for i = 1, count do
  local id, payload = ARGV[2 * i + 1], ARGV[2 * i + 2]
  {each}
  times[2 * i - 1], times[2 * i] = ARGV[2], id
end
"""
_PLAIN: Final = "records[2 * i - 1], records[2 * i] = id, payload"
_ORDERED: Final = """
  local number = struct.pack('>I6', arrival + i)
  records[2 * i - 1], records[2 * i] = id, 's' .. payload:sub(1, 8) .. number .. payload:sub(9)
"""
_MERGED: Final = """
  local number = struct.pack('>I6', arrival + i)
  local entry = payload:sub(1, 8) .. number .. payload:sub(9)
  if waiting[i] or is_new[id] then error('this push has new ids alone') end
  is_new[id] = true
  records[2 * i - 1], records[2 * i] = id, 's' .. entry
"""
_BEGIN: Final = "local count, times, records = (#ARGV - 2) / 2, {}, {}\n"
_ARRIVAL: Final = "local arrival = redis.call('HINCRBY', KEYS[3], 'arrival', count) - count\n"
_WAITING: Final = """
local ids, is_new = {}, {}
for i = 1, count do ids[i] = ARGV[2 * i + 1] end
local waiting = redis.call('HMGET', KEYS[2], unpack(ids))
"""
_ONCE: Final = "if redis.call('HSETNX', KEYS[4], ARGV[1], 1) == 0 then return end\n"

OURS: Final = "all that ours does"
_SCRIPTS: Final = {
    "only reads its arguments": _BEGIN + "for i = 3, #ARGV do times[i] = ARGV[i] end",
    "gives ids a due time": _BEGIN + _EACH.format(each="") + _DUE,
    "keeps a payload for each": _BEGIN + _EACH.format(each=_PLAIN) + _DUE + _RECORDS,
    "gives payloads their order": _BEGIN + _ARRIVAL + _EACH.format(each=_ORDERED) + _DUE + _RECORDS,
    "looks for payloads that wait": _BEGIN + _ARRIVAL + _WAITING + _EACH.format(each=_MERGED) + _DUE + _RECORDS,
    "is applied once: the smallest": _ONCE
    + _BEGIN
    + _ARRIVAL
    + _WAITING
    + _EACH.format(each=_MERGED)
    + _DUE
    + _RECORDS,
}
PARTS: Final = (*_SCRIPTS, OURS)


def parts_of_a_push(server: Server, ids: int) -> dict[str, float]:
    """Microseconds of the server's processor for each payload, of calls with as many new ids as a call of ours has."""
    found = {name: _measured(server, ids, _small(server, text)) for name, text in _SCRIPTS.items()}
    app = Lowkiq(Config(redis_url=server.url))

    @app.worker(queue_name=new_queue("pushing"), shards_count=1)
    def blank(_: object) -> None:
        pass

    def push(numbers: range) -> None:
        blank.push_many([{"id": f"id{k:06}", "payload": f"payload {0:04} of it"} for k in numbers])

    return found | {OURS: _measured(server, ids, push)}


def _small(server: Server, text: str) -> Callable[[range], None]:
    """Pushes by that script, with the bytes that ours is sent."""
    run, score = server.admin.register_script(text), struct.pack(">d", 1.8e9)

    def push(numbers: range) -> None:
        arguments: list[str | bytes] = [uuid4().hex, "1800000000.123456"]
        for k in numbers:
            arguments += [f"id{k:06}", score + b'"payload 0000 of it"']
        run(keys=["due", "jobs", "meta", "pushes"], args=arguments)

    return push


def _measured(server: Server, ids: int, push: Callable[[range], None]) -> float:
    server.admin.flushall()
    push(range(ids, ids + 1))
    began_at = processor_time(server.admin)
    for start in range(0, ids, PUSHED_AT_ONCE):
        push(range(start, min(start + PUSHED_AT_ONCE, ids)))
    return (processor_time(server.admin) - began_at) * 1_000_000 / ids
