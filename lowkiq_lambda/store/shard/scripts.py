"""The scripts, one `.lua` file for each transition, linked with the includes that they need.

The first lines of a file declare what it uses directly: `--! keys NAMES`, each a local that holds the key;
`--! each NAMES` instead, in a script that is given several shards, whose keys these locals hold by turns, as
`for _ in shards do` goes on; `--! needs NAMES`, includes; `--! gives NAMES`, the locals of an include that other files
use; and `--! rarely NAMES`, includes whose functions are reached
through `rarely()`, as a function costs a script a microsecond each time that it is defined, and most calls need few.

An include stands in a scope of its own, `local NAMES do ... end`, with the names that it gives: Lua has room for 200
locals in a function, and what an include has for itself takes none of it.

Keys of a feature that not every queue uses (`keys.FEATURES`) are declared like any other. A call whose shard does not
use the feature passes none of them: there they are nil, `has_FEATURE` is false, and `--! with FEATURE NAMES` includes
nothing. Each set of features has a script of its own, so what a queue does not use costs it nothing. Of features that a
shard begins to use with a push (`keys.IN_USE`) a caller may not know: `lacking` has those that the script would have
something to do with, but was not given the keys of, and include/shard.lua refuses the call. docs/data-model.md has the
rules.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha1
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias

import msgspec

from lowkiq_lambda.base.errors import BackendUnavailable, QueueMismatch, ShardClosed, ShardDamaged, ShardMoving
from lowkiq_lambda.store.shard.keys import FEATURES, IN_USE, Keyed, Pick, ShardRef, key_names, picker

CONTRACT_VERSION: Final = 1
"""Of the layout and of what scripts take and return; a shard keeps the least one that may write to it."""

Argument: TypeAlias = str | bytes | int | float
Reply: TypeAlias = list[Any]

_FOLDERS: Final = ("drain", "push", "operate", "move", "read", "duty", "schedule", "task", "process")
"""The folders of scripts, by their callers; no two scripts have the same name."""
_MARK: Final = "--! "
_COMMENT: Final = re.compile(r"^ *--(?!!).*\n", re.MULTILINE)
_RARELY: Final = re.compile(r"rarely\(\)\.(\w+)")
_LOCALS: Final = re.compile(r"^local (?:function (\w+)|(\w+(?:, \w+)*)( =|$))", re.MULTILINE)
"""The definitions at the top of a file: statements in blocks are indented."""


class ReplyShape(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The parts of a script's reply, in its order: a subclass stands beside each call and names the parts.

    Texts are bytes, and may be empty; numbers that Lua counted are integers.
    """

    scripts: ClassVar[tuple[str, ...]] = ()
    """The scripts with this reply, if they do their work. None: a refusal, or a part of another reply."""

    @classmethod
    def of(cls, reply: object) -> Self:
        """The reply by names. Raises msgspec.ValidationError, a ValueError, if it has other parts or types."""
        return msgspec.convert(reply, cls)


class StatusReply(ReplyShape, frozen=True):
    """The reply of scripts that return no more than the result of the call."""

    scripts = (
        *("abandon", "release_dead", "start", "survive", "unwake", "wake"),
        *("close", "evict", "forget_timing", "mark_limited", "open", "quiet", "set_journal"),
        *("open_received", "receive", "reopen"),
        *("carry_entries", "note_run", "put_entry", "remove_entry", "switch_entry"),
        "finish_duty",
    )
    status: bytes


class Script(msgspec.Struct, frozen=True):
    """A script and its hash in the script cache."""

    name: str
    source: str
    sha: str
    keys: tuple[str, ...]
    """The names of the keys that it is given, of each shard."""
    pick: Pick
    """These keys, of all that a shard has."""


class Part(NamedTuple):
    """A file, and what its first lines declare, by their first word ("with FEATURE": by two)."""

    text: str
    marks: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, text: str) -> "Part":
        """The file of that text."""
        marks: dict[str, list[str]] = {}
        for line in takewhile(lambda line: line.startswith(_MARK), text.splitlines()):
            first, *names = line.removeprefix(_MARK).split()
            if first == "with":
                first = f"with {names.pop(0)}"
            marks.setdefault(first, []).extend(names)
        return cls(text, marks)

    def scoped(self) -> str:
        """The text in a scope of its own, outside of which there are the statements that define what it gives."""
        gives = frozenset(self.marks.get("gives", ()))
        outside: list[str] = []

        def assigned(local: re.Match[str]) -> str:
            function, names, equals = local.groups()
            if gives.isdisjoint(defined := [function] if function else names.split(", ")):
                return local[0]
            outside.extend(defined)
            if function:
                return f"function {function}"
            return f"{names}{equals}" if equals else ""

        body = _LOCALS.sub(assigned, self.text)
        return "\n".join([f"local {', '.join(outside)}" if outside else "", "do", body, "end"])

    def own_keys(self) -> Sequence[str]:
        """The keys that it uses directly."""
        return [*self.marks.get("keys", ()), *self.marks.get("each", ())]

    def needs(self, features: Iterable[str]) -> Sequence[str]:
        """The includes that it uses directly, for a shard that uses these features."""
        marks = ("needs", *(f"with {feature}" for feature in features))
        return [name for mark in marks for name in self.marks.get(mark, ())]


class Linker:
    """Links the scripts of a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._parts: dict[str, Part] = {}
        self._scoped: dict[str, str] = {}

    def script(self, name: str, features: tuple[str, ...] = ()) -> Script:
        """The script of that name, for shards that use these features."""
        (text,) = [text for folder in _FOLDERS if (text := self._text(f"{folder}/{name}.lua"))]
        part = Part.of(text)
        early = self._in_order(part.needs(features), features)
        parts = [*map(self.include, early), part]
        seldom = [include for each in parts for include in each.marks.get("rarely", ())]
        late = [include for include in self._in_order(seldom, features) if include not in early]
        parts = [*parts[:-1], *map(self.include, late), part]
        own_keys = {key for each in parts for key in each.own_keys()}
        keys = tuple(key for key in key_names(features) if key in own_keys)
        marked = {mark for each in parts for mark in each.marks}
        relevant = [feature for feature, own in FEATURES.items() if own_keys & {*own} or f"with {feature}" in marked]
        lacking = [feature for feature in relevant if feature in IN_USE and feature not in features]
        missing = [
            key for feature in relevant if feature not in features for key in FEATURES[feature] if key in own_keys
        ]
        constants = [
            "local call = redis.call",
            *(f"local has_{feature} = {str(feature in features).lower()}" for feature in relevant),
        ]
        source = "\n".join(
            [
                *constants,
                f"local lacking = {{{', '.join(f'{feature} = true' for feature in lacking)}}}"
                if lacking
                else "local lacking",
                *_bound(keys, missing, by_turns="each" in part.marks),
                *(["local rarely"] if late else []),
                *map(self._in_scope, early),
                *_library([*map(self._in_scope, late)], parts, keys, constants),
                part.text,
            ]
        )
        # The server's own name of a script, no signature.
        sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
        return Script(name, source, sha, keys, picker(keys, features))

    def include(self, name: str) -> Part:
        """The include of that name, read once."""
        if name not in self._parts:
            if not (text := self._text(f"include/{name}.lua")):
                raise ValueError(f"There is no include {name!r}.")
            self._parts[name] = Part.of(text)
        return self._parts[name]

    @cached_property
    def _bundle(self) -> dict[str, str]:
        """The texts by their paths, where a package has them in one file (stack/bundles.py)."""
        bundle = self._root.with_name(f"{self._root.name}.json")
        return msgspec.json.decode(bundle.read_bytes(), type=dict[str, str]) if bundle.exists() else {}

    def _text(self, path: str) -> str:
        """The text of a file, without comments, as servers keep what they are sent; empty if there is none."""
        if self._bundle:
            return self._bundle.get(path, "")
        file = self._root / path
        return _COMMENT.sub("", file.read_text()) if file.is_file() else ""

    def _in_scope(self, name: str) -> str:
        """The text of that include in a scope of its own; made once, as many scripts need it."""
        if name not in self._scoped:
            self._scoped[name] = self.include(name).scoped()
        return self._scoped[name]

    def _in_order(self, names: Iterable[str], features: Iterable[str]) -> list[str]:
        """These includes and all that they need, each once and behind what it needs itself."""
        is_placed: dict[str, bool] = {}

        def add(name: str) -> None:
            if is_placed.get(name) is False:
                raise ValueError(f"The include {name!r} needs itself.")
            if name not in is_placed:
                is_placed[name] = False
                for dependency in self.include(name).needs(features):
                    add(dependency)
                is_placed[name] = True
                order.append(name)

        order: list[str] = []
        for name in names:
            add(name)
        return order


_linker: Final = Linker(Path(__file__).parents[1] / "lua")


@cache
def script(name: str, features: tuple[str, ...] = ()) -> Script:
    """The script of that name, for shards that use these features; read once."""
    return _linker.script(name, features)


def _bound(keys: Sequence[str], missing: Sequence[str], *, by_turns: bool) -> list[str]:
    """Locals that hold the keys; with `by_turns` those of one shard after the other."""
    names, count = ", ".join(keys), len(keys)
    absent = [f"local {', '.join(missing)}"] if missing else []
    if not by_turns:
        return [f"local {names} = unpack(KEYS)", *absent]
    return [
        f"local {names}",
        "local function shards(_, last)",
        f"local at = (last or {1 - count}) + {count}",
        "if at > #KEYS then return nil end",
        f"{names} = unpack(KEYS, at, at + {count - 1})",
        "return at end",
        *absent,
    ]


def _library(late: Sequence[str], parts: Sequence[Part], keys: Sequence[str], constants: Sequence[str]) -> list[str]:
    """`rarely()`: defines these functions when it is called first, and returns those that are asked for."""
    if not late:
        return []
    names = sorted({name for part in parts for name in _RARELY.findall(part.text)})
    exports = ", ".join(f"{name} = {name}" for name in names)
    return [
        "local library",
        "rarely = function()",
        "if library then return library end",
        # These are bound anew, because a function may reach no more than 60 names outside of it.
        *constants,
        f"local {', '.join(keys)} = unpack(KEYS)",
        *late,
        f"library = {{{exports}}}",
        "return library end",
    ]


def accepted(reply: Reply, shard: ShardRef) -> Reply:
    """The reply. Raises QueueMismatch if the shard refuses this library, ShardClosed this declaration.

    And ShardMoving if its jobs are on their way to it.
    """
    if reply[0] == b"SKEW":
        raise BackendUnavailable("The server refused the time that it had just told.")
    if reply[0] == b"VERSION" and not reply[1].isdigit():
        raise ShardDamaged(f"Shard {shard.number} of {shard.queue_name!r} has no sound least_version.")
    if reply[0] == b"VERSION":
        raise QueueMismatch(
            f"Queue {shard.queue_name!r} may be written only by contract version {reply[1].decode()} or newer, "
            f"this library has {CONTRACT_VERSION}: upgrade lowkiq_lambda here.",
            queue_name=shard.queue_name,
        )
    if reply[0] == b"MOVING":
        raise ShardMoving
    if reply[0] == b"CLOSED":
        closed = ShardClosed(
            f"Queue {shard.queue_name!r} no longer has {shard.shards_count} shards, or has another merge: it was "
            "declared anew, so deploy the new declaration here too.",
            queue_name=shard.queue_name,
        )
        closed.floors = reply[1] if len(reply) > 1 else None
        raise closed
    return reply


def evalsha(code: Script, target: Keyed, args: Sequence[Argument]) -> tuple[Argument, ...]:
    """The command that runs a script by its hash."""
    keys = target.some(code.pick)
    return "EVALSHA", code.sha, len(keys), *keys, *args
