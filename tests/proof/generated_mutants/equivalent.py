"""Faults that change nothing which a caller could see, each with the reason: equivalent.toml."""

import tomllib
from pathlib import Path
from typing import Final

import msgspec

from tests.proof.generated_mutants.places import LuaMutant, mutants_of

FILE: Final = Path(__file__).parents[1] / "equivalent.toml"


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a file, what it becomes ("" if it is dropped), and why that makes no difference."""

    file: str
    before: str
    after: str
    why: str


def entries() -> list[Equivalent]:
    """All of them."""
    return msgspec.convert(tomllib.loads(FILE.read_text()).get("mutant", []), list[Equivalent])


def equivalents() -> dict[tuple[str, str, str], str]:
    """The reason by `LuaMutant.key`."""
    return {(one.file, one.before, one.after): one.why for one in entries()}


def stale(listed: list[Equivalent]) -> list[Equivalent]:
    """Those that no generated fault is any more."""
    made: dict[str, set[tuple[str, str, str]]] = {}
    for file in {one.file for one in listed}:
        made[file] = {mutant.key for mutant in _of(file)}
    return [one for one in listed if (one.file, one.before, one.after) not in made[one.file]]


def _of(file: str) -> list[LuaMutant]:
    try:
        return mutants_of(file)
    except FileNotFoundError:
        return []
