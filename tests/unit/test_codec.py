"""What is written as JSON: the look at types decides as a comparison of each field does (E-62)."""

import gc
import math
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import make_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum, IntFlag, StrEnum
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lowkiq_lambda import JobError
from lowkiq_lambda.store.shard.codec import dump_json, load_json


class Side(StrEnum):
    """Equal to a text."""

    LEFT = "left"


class Grade(IntEnum):
    """Equal to a number."""

    LOW = 1


class Flags(IntFlag):
    """The same, in bits."""

    A = 1


class Key(str):
    """A text of a class of its own."""

    __slots__ = ()


class OwnInt(int):
    """A number of a class of its own."""


class OwnFloat(float):
    """Another one."""


class Point(NamedTuple):
    """A tuple with names."""

    x: object


class AnyList(list[object]):
    """A list of a class of its own."""


class Liar(msgspec.Struct):
    """Equal to all."""

    x: int = 1

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


Plain: Final = make_dataclass("Plain", [("x", int, 1)])
PARTS: Final = (
    *(None, True, False, 0, 1, -1, 2**53, 2**64, -(2**63) - 1, 10**308, 10**309, 10**4_299),
    *(0.0, -0.0, 1.0, 1.5, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf),
    *("", "null", "annulled", "1", "\ud800", "a\udfff", "\x00\u2028\uffff😀", b"x", bytearray(b"x"), memoryview(b"x")),
    *(Side.LEFT, Grade.LOW, Flags.A, Key("k"), OwnInt(1), OwnFloat(1.5), Decimal(1), UUID(int=1), 1j, object()),
    *(
        datetime(2026, 1, 1, tzinfo=UTC),
        date(2026, 1, 1),
        time(1),
        timedelta(1),
        {1},
        frozenset({"a"}),
        {"a": 1}.keys(),
    ),
    *(Plain(), Liar(), Point(1), Point(math.nan), OrderedDict(b=1, a=2), defaultdict(list, a=[1]), deque([1])),
    *(AnyList([1]), AnyList([Grade.LOW]), MappingProxyType({"a": 1}), msgspec.Raw(b"1"), msgspec.UNSET),
    vars(SimpleNamespace(a=1, b=Grade.LOW)),
)
KEYS: Final = ("", "a", "b", "null", "\ud800", Key("a"), Side.LEFT, 1, 1.5, True, None, (1,), b"a", Grade.LOW)


def scalars() -> st.SearchStrategy[Any]:
    """Values that are plain more often than not."""
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
    return plain | plain | st.sampled_from(PARTS)


def containers(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Of such values, with keys that are texts more often than not."""
    keys = st.text(max_size=5) | st.text(max_size=5) | st.sampled_from(KEYS)
    few = st.lists(of, max_size=6)
    return few | few.map(tuple) | st.dictionaries(keys, of, max_size=6) | st.dictionaries(st.text(max_size=5), of)


PAYLOADS: Final = st.recursive(scalars(), containers, max_leaves=15)


def within(levels: int, innermost: object) -> Any:
    """The value, with so many lists around it."""
    for _ in range(levels):
        innermost = [innermost]
    return innermost


KINDS: Final = (str, int, float, bool, type(None))


def comes_back(payload: object, restored: object) -> bool:
    """Whether a value has come back from JSON, field by field: of the same type, but for tuples and subclasses."""
    if isinstance(payload, dict):
        return (
            isinstance(restored, dict)
            and len(payload) == len(restored)
            and all(type(key) is str for key in payload)
            and all(key in restored and comes_back(value, restored[key]) for key, value in payload.items())
        )
    if isinstance(payload, list | tuple):
        if not isinstance(restored, list) or len(payload) != len(restored):
            return False
        return all(comes_back(value, back) for value, back in zip(payload, restored, strict=True))
    return type(payload) is type(restored) and type(payload) in KINDS and payload == restored


def field_by_field(payload: object) -> bytes | None:
    """The bytes of a payload that comes back, else None."""
    try:
        dumped = msgspec.json.encode(payload, order="sorted")
        return dumped if comes_back(payload, msgspec.json.decode(dumped)) else None
    except (TypeError, ValueError):
        return None


def dumped_or_none(payload: object) -> bytes | None:
    """The same by the library."""
    try:
        return dump_json(payload)
    except JobError:
        return None


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(PAYLOADS)
@example({"none": None, "not a number": math.nan, "more": "null null"})
@example({"not a number": math.nan, "text": "null", "more": "x" * 40})
@example([{"a": None}, [None, math.inf], "x" * 40])
@example({Key("a"): 1, "more": "x" * 40})
@example(within(40, {Side.LEFT: 1}))
@example({"a": [{"b": Grade.LOW}], "more": "x" * 40})
@example([10**4_299, "x" * 40])
def test_e62_the_types_in_a_payload_decide_as_its_fields_do(payload: object) -> None:
    """E-62: the same payloads pass as if each field were compared, and their bytes are the same."""
    assert field_by_field(payload) == dumped_or_none(payload)


PLACES: Final[dict[str, Callable[[Any], Any]]] = {
    "alone": lambda part: part,
    "in a list": lambda part: ["x" * 40, part],
    "in a tuple": lambda part: ("x" * 40, part),
    "in a dict": lambda part: {"a": "x" * 40, "b": part},
    "below others": lambda part: {"a": [{"b": "x" * 40}, {"c": (part, None)}], "d": 1.5, "e": "null"},
    "deep": lambda part: within(40, part),
    "too deep for a look at types": lambda part: within(150, part),
    "in many bytes": lambda part: ["x" * 5_000, part],
    "as a key": lambda part: {"a": "x" * 40, "b": [{part: 1}]},
}


def may_be_a_key(part: object) -> bool:
    """Whether a dict takes it: the class of a view of a dict has a hash from Python 3.12 on, which a dict lacks."""
    try:
        hash(part)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("place", PLACES)
def test_e62_each_value_passes_or_not_wherever_it_stands(place: str) -> None:
    """E-62: neither the place of a value nor the size of the payload changes the answer."""
    around = PLACES[place]
    payloads = [around(part) for part in PARTS if place != "as a key" or may_be_a_key(part)]

    assert [] == [payload for payload in payloads if field_by_field(payload) != dumped_or_none(payload)]


def test_e62_a_payload_that_holds_itself_is_refused() -> None:
    """E-62: what has no end has no JSON."""
    around: dict[str, object] = {"text": "x" * 40}
    around["itself"] = [around]

    with pytest.raises(JobError, match="payload: is nested too deeply"):
        dump_json(around)


def test_e62_an_integer_that_the_decoder_refuses_is_refused() -> None:
    """E-62: a program may let Python write out longer integers than JSON is read with."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(JobError, match="cannot be written as JSON"):
            dump_json({"text": "x" * 40, "n": 10**5_000})
        assert {"n": 10**4_000} == load_json(dump_json({"n": 10**4_000}))
    finally:
        sys.set_int_max_str_digits(limit)


def test_e62_a_payload_is_judged_without_a_call_for_each_field() -> None:
    """E-62: how many functions of Python run does not depend on how many fields there are."""

    def calls(payload: object) -> int:
        names: list[str] = []
        # A collection in the middle would run finalizers of what other tests have left.
        gc.disable()
        sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
        try:
            dump_json(payload)
        finally:
            sys.setprofile(None)
            gc.enable()
        return len(names)

    fields = {f"field {number}": [number, 1.5, None, "text", {"a": True}][number % 5] for number in range(1_000)}
    assert calls(dict([*fields.items()][:20])) == calls(fields)
