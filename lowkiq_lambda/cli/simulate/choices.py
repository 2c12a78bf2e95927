"""Which choices are tried: those that somebody names, or the present one and what is near it."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.simulate.choice import Choice
from lowkiq_lambda.simulate.times import Times

MOST: Final = 24
_COMPUTES: Final = ("minute", "shards", "wake", "linger", "fargate:0.25x1")
_WHOLE: Final = ("shards", "concurrency", "batch", "threads", "memory")
_WORDS: Final = ("tenants", "compute")
_FUNCTIONS: Final = ("minute", "shards", "wake", "linger", "start")
_TENANTS: Final = ("none", "spread", "home")
_NAMES: Final = {"shards": "schedules of shards"}
_PROCESSES: Final = re.compile(r"(fargate|daemon):([0-9.]+)x([0-9]+)")
_LINGERS: Final = 57.0
"""Seconds of an invocation that listens: until the next one begins."""
_WAITS_BELOW: Final = 0.3
"""Share of computing of a call, below which calls run side by side."""
_FEW_SECONDS: Final = 0.1
_MOST_OF_SECOND: Final = 1.0
_THREADS: Final = 5
_MOST_SHARDS: Final = 1_000


class TriedChoice(NamedTuple):
    """A choice, what it is called, and whether AWS has a price for it."""

    name: str
    choice: Choice
    is_priced: bool


def tried(words: Sequence[str], base: Choice, computes: Sequence[str]) -> list[TriedChoice]:
    """All that `--try NAME=A,B` names, each with each. `computes`: those where none is named. Raises ConfigError."""
    values: dict[str, list[str]] = {}
    for word in words:
        name, _, texts = word.partition("=")
        if name not in {*_WHOLE, *_WORDS} or not texts.strip(", "):
            raise ConfigError(f"--try {word} is refused: give NAME=A,B with {', '.join((*_WHOLE, *_WORDS))}.")
        each = [*values.get(name, ()), *(text.strip() for text in texts.split(",") if text.strip())]
        values[name] = [*dict.fromkeys(each)]
    values = {"compute": [*computes], **values}
    count = math.prod(map(len, values.values()))
    if count > MOST:
        raise ConfigError(f"These are {count} choices, of at most {MOST}: try fewer values at once.")
    return [_candidate(dict(zip(values, each, strict=True)), base) for each in product(*values.values())]


def usual(base: Choice, present: str | None, times: Times, target: float | None) -> list[TriedChoice]:
    """The present choice first, then twice the shards, calls side by side, larger batches, each with each compute."""
    variants: list[Mapping[str, str]] = [{}, {"shards": str(min(2 * base.shards, _MOST_SHARDS))}]
    may_rise = base.concurrency == 1 and base.batch <= _MOST_SHARDS // 10 and base.tenants != "home"
    if times.computing < _WAITS_BELOW and may_rise:
        variants.append({"concurrency": "10"})
    batch = _better_batch(times, target)
    if batch > base.batch and batch * base.concurrency <= _MOST_SHARDS:
        variants.append({"batch": str(batch)})
    names = [present] if present else []
    names += [name for name in _COMPUTES if name != present]
    candidates = [_candidate({"compute": name, **variant}, base) for name in names for variant in variants]
    return candidates[:MOST]


def _better_batch(times: Times, target: float | None) -> int:
    """The smallest batch whose fixed part is a tenth of the rest, as far as a call stays short."""
    each = times.each_id + times.each_payload
    if not each or times.fixed < each:
        return 1
    longest = min(_MOST_OF_SECOND, math.inf if target is None else target / 10)
    return int(max(1, min(times.fixed / (0.1 * each), longest / each, 100)))


def _candidate(values: Mapping[str, str], base: Choice) -> TriedChoice:
    changes: dict[str, Any] = {name: _whole(name, text) for name, text in values.items() if name in _WHOLE}
    if "tenants" in values:
        changes["tenants"] = values["tenants"]
        if changes["tenants"] not in _TENANTS:
            raise ConfigError(f"tenants={changes['tenants']} is refused: there are {', '.join(_TENANTS)}.")
    name, compute, is_priced = _compute_of(values["compute"], changes.get("threads"))
    try:
        # Made anew, so that its bounds are checked.
        choice = msgspec.convert({**msgspec.structs.asdict(base), **compute, **changes}, Choice)
    except msgspec.ValidationError as error:
        raise ConfigError(f"A choice is refused: {_reason(error)}.") from error
    return TriedChoice(", ".join([name, *_details(choice, changes)]), choice, is_priced)


def _reason(error: Exception) -> str:
    text = re.sub(
        r"`(int|float|str)`",
        lambda match: {"int": "a whole number", "float": "a number"}.get(match[1], "a word"),
        str(error),
    )
    return re.sub(r" - at `\$\.?(\w*)`", r" for \1", text)


def _details(choice: Choice, changes: Mapping[str, object]) -> Iterator[str]:
    yield f"{choice.shards} shard{'' if choice.shards == 1 else 's'}"
    if choice.concurrency > 1:
        yield f"concurrency {choice.concurrency}"
    if choice.batch > 1:
        yield f"batch {choice.batch}"
    if choice.tenants != "none":
        yield f"tenants {choice.tenants}"
    if "threads" in changes:
        yield f"{choice.threads} thread{'' if choice.threads == 1 else 's'}"
    if "memory" in changes:
        yield f"{choice.memory} MB"


def _compute_of(text: str, threads: object) -> tuple[str, dict[str, Any], bool]:
    """Its name, the fields of the choice, and whether it has a price."""
    if match := _PROCESSES.fullmatch(text):
        kind, size, number = match.groups()
        try:
            first, second = float(size), int(number)
        except ValueError:
            first, second = 0.0, 0
        if not (0 < first <= _MOST_SHARDS and 0 < second <= _MOST_SHARDS):
            raise ConfigError(f"compute={text} is refused: give such as fargate:0.25x1 or daemon:4x5.")
        if kind == "fargate":
            each = threads if isinstance(threads, int) else _THREADS
            fields = {"processes": second, "cores": first * second, "threads": each * second}
            tasks = "a task" if second == 1 else f"{second} tasks"
            return f"{tasks} of Fargate ({first:g} vCPU)", {"compute": "daemon", **fields}, True
        if not first.is_integer():
            raise ConfigError(f"compute={text} is refused: give processes x threads, such as daemon:4x5.")
        fields = {"processes": int(first), "cores": first, "threads": int(first) * second}
        return (
            f"daemon, {int(first)} x {second} thread{'' if second == 1 else 's'}",
            {"compute": "daemon", **fields},
            False,
        )
    if text not in _FUNCTIONS:
        known_ones = ", ".join((*_FUNCTIONS, "fargate:VCPUxTASKS", "daemon:PROCESSESxTHREADS"))
        raise ConfigError(f"compute={text} is refused: there are {known_ones}.")
    return _NAMES.get(text, text), {"compute": text, **({"timeout": _LINGERS} if text == "linger" else {})}, True


def _whole(name: str, text: str, option: str = "--try") -> int:
    if not (text.isascii() and text.replace("_", "").isdecimal()):
        raise ConfigError(f"{option} {name}={text} is refused: give whole numbers.")
    return int(text)


def limited(words: Sequence[str], base: Choice) -> Choice:
    """The choice with the limits that `--limit` names. Raises ConfigError."""
    changes: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name == "max_running":
            changes[name] = _whole(name, text, "--limit")
        elif name == "rate":
            changes[name] = per_second(text)
        # 0 is a choice without the limit, and somebody has asked for one.
        if not changes.get(name):
            raise ConfigError(f"--limit {word} is refused: give max_running=20 or rate=100/s.")
    return msgspec.structs.replace(base, **changes)


def per_second(text: str, *, may_be_0: bool = True) -> float:
    """The rate of `100/s`, `3/m`, `500/h` or `2000/d`, or of a number alone, in a second. Raises ConfigError."""
    count, _, unit = text.partition("/")
    seconds = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}.get(unit.strip())
    try:
        value = float(count) / (seconds or math.nan)
    except ValueError:
        value = math.nan
    if not -math.inf < value < math.inf:
        raise ConfigError(f"{text!r} is not a rate: give such as 10/s, 600/m or 50000/d.")
    if value < 0 or (value == 0 and not may_be_0):
        raise ConfigError(f"{text!r} is refused: a rate is above 0, such as 10/s.")
    return value
