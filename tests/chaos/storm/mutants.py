"""Faults of the engine that a storm must find: each breaks one promise in one line."""

from collections.abc import Callable
from functools import cache
from hashlib import sha1
from typing import Any

import msgspec

from lowkiq_lambda.engine import deciding, overdue
from lowkiq_lambda.engine.deciding import retry_record
from lowkiq_lambda.engine.failure import CountedFailure
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard import backend
from lowkiq_lambda.store.shard.scripts import Script, script

SCRIPTS: dict[str, tuple[tuple[str, str], ...]] = {
    "lease ignored": (("if now < held_until or exists(lease) then", "if false then"),),
    "recovery loses some": (
        ("for i = 1, #left, 2 do ids[#ids + 1] = left[i] end", "for i = 1, #left, 4 do ids[#ids + 1] = left[i] end"),
    ),
    "wrong score": (("then score, at = packed_job:sub(2, 9), 10", "then at = 10"),),
    "nonce ignored": (
        ("if holder ~= nonce or current ~= token then return 'LOST' end", ""),
        ("return n == tonumber(last) and 'AGAIN' or 'LOST'", "return 'NEXT', token"),
    ),
    "token ignored": (("if holder ~= nonce or current ~= token then", "if holder ~= nonce then"),),
}
OTHERS = ("retry_count + 1", "expiry ignored")
NAMES = (*SCRIPTS, *OTHERS)


def apply(name: str) -> None:
    """Break this process's engine so."""
    vars(backend)["script"] = scripts_of(name)
    if name == "retry_count + 1":
        vars(deciding)["retry_record"] = one_more
    elif name == "expiry ignored":
        vars(overdue)["drop_expired"] = nothing_is_over


def scripts_of(name: str) -> Callable[..., Script]:
    """The scripts of the engine that is broken so: parts of their text are replaced, wherever they occur."""
    changes = SCRIPTS.get(name, ())

    @cache
    def change(name: str, groups: tuple[str, ...] = ()) -> Script:
        source = script(name, groups).source
        for old, new in changes:
            source = source.replace(old, new)
        sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
        return msgspec.structs.replace(script(name, groups), source=source, sha=sha)

    return change


def one_more(delivery: Delivery, failure: CountedFailure, count: float, *others: Any) -> Any:
    """Counts each failure twice."""
    return retry_record(delivery, failure, count + 1, *others)


def nothing_is_over(*_claim: Any) -> list[Delivery]:
    """Hands over what has expired."""
    return []
