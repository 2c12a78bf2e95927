"""Faults of the engine that a race must find: each breaks one promise in one line of a script."""

from collections.abc import Callable
from functools import cache
from hashlib import sha1

import msgspec

from lowkiq_lambda.store.shard.scripts import Script, script

CHANGES = {
    "what is in flight is claimed beside itself": ("if is_flying[id] then", "if false then"),
    "what stays in flight is taken for done": (
        "if next_step ~= 'part' and next_step ~= 'more' then",
        "if next_step ~= 'part' then",
    ),
}


def scripts_of(name: str) -> Callable[..., Script]:
    """The scripts of the engine that is broken so."""
    old, new = CHANGES[name]

    @cache
    def change(name: str, groups: tuple[str, ...] = ()) -> Script:
        source = script(name, groups).source.replace(old, new)
        sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
        return msgspec.structs.replace(script(name, groups), source=source, sha=sha)

    return change
