"""Checks the Lua scripts: names that are not defined or not used, and what their first lines declare.

`python -m lint.lua`. Each file is read by itself, so that a fault is told once, with its line. What a file may use are
its own names, the keys that it declares, and the names of the includes that it declares.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import lowkiq_lambda.store
from lint.lua_parser import read_names
from lowkiq_lambda.store.shard.keys import FEATURES, key_names
from lowkiq_lambda.store.shard.scripts import Part

LUA: Final = Path(lowkiq_lambda.store.__file__).parent / "lua"
GIVEN: Final = frozenset(
    [
        "ARGV",
        "bit",
        "call",
        "cmsgpack",
        "error",
        "ipairs",
        "math",
        "next",
        "pairs",
        "pcall",
        "rarely",
        "redis",
        "string",
        "struct",
        "table",
        "tonumber",
        "tostring",
        "type",
        "unpack",
    ]
)
"""Names that the server, or the linking, defines for every file. KEYS is none: keys have names."""
HOT: Final = ("drain/", "push/")
"""Scripts that jobs pay for: they define no function that they do not use."""


class Fault(NamedTuple):
    """What is wrong, and in which line of which file."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def faults(texts: Mapping[str, str]) -> list[Fault]:
    """What is wrong with these files, given by their paths in the folder of scripts. Raises LuaSyntaxError."""
    linter = _Linter(texts)
    return [fault for path in texts for fault in sorted(linter.of(path))]


class _Linter:
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._parts = {path: Part.of(text) for path, text in texts.items()}
        self._names = {path: read_names(text) for path, text in texts.items()}
        # Asked for once for each name of each file.
        self._needs = {path: part.needs(FEATURES) for path, part in self._parts.items()}
        self._keys = {*key_names(FEATURES)}

    def of(self, path: str) -> Iterator[Fault]:
        """What is wrong with one file."""
        names = self._names[path]
        yield from (Fault(path, line, f"{name!r} is not used") for name, line in names.unused)
        yield from self._own_names(path)
        yield from self._given_names(path)
        yield from self._own_keys(path)
        needs, rarely = self._needs[path], self._parts[path].marks.get("rarely", ())
        yield from self._includes(path, needs, names.takes, "needed")
        yield from self._includes(path, rarely, names.rarely, "needed rarely")
        offered = self._offered(needs) | self._given(path)
        yield from (
            Fault(path, line, f"{name!r} is not defined{self._hint(name)}")
            for name, line in names.takes.items()
            if name not in offered | self._keys
        )
        yield from (
            Fault(path, line, f"rarely().{name} is not defined{self._hint(name)}")
            for name, line in names.rarely.items()
            if name not in self._offered(rarely)
        )
        if path.startswith(HOT):
            yield from self._idle_functions(path)

    def _own_names(self, path: str) -> Iterator[Fault]:
        """Those of the file that nobody uses, or that another include has too."""
        names = self._names[path]
        for name, line in names.defines.items():
            if name not in names.used_here and not self._is_used_elsewhere(path, name):
                yield Fault(path, line, f"{name!r} is not used")
            twins = [other for other in self._defining(name) if _is_include(path) and other < path]
            yield from (Fault(path, line, f"{name!r} is defined in {twin}, too") for twin in twins)

    def _given_names(self, path: str) -> Iterator[Fault]:
        """What an include gives is just what other files use of it."""
        defines, gives = self._names[path].defines, self._gives(path)
        for name in gives:
            if name not in defines:
                yield Fault(path, 1, f"{name!r} is given and not defined")
            elif not self._is_used_elsewhere(path, name):
                yield Fault(path, 1, f"{name!r} is given and not used elsewhere")
        for name, line in defines.items():
            if name not in gives and self._is_used_elsewhere(path, name):
                yield Fault(path, line, f"{name!r} is used elsewhere and not given")

    def _gives(self, path: str) -> Sequence[str]:
        return self._parts[path].marks.get("gives", ())

    def _own_keys(self, path: str) -> Iterator[Fault]:
        declared, takes = {*self._parts[path].own_keys()}, self._names[path].takes
        yield from (Fault(path, 1, f"{key!r} is not a key of a shard") for key in declared - self._keys)
        yield from (Fault(path, 1, f"the key {key!r} is declared and not used") for key in declared - {*takes})
        for key, line in takes.items():
            if key in self._keys - declared:
                yield Fault(path, line, f"the key {key!r} is used and not declared")

    def _includes(self, path: str, includes: Sequence[str], takes: Mapping[str, int], how: str) -> Iterator[Fault]:
        for include in includes:
            if _path(include) not in self._parts:
                yield Fault(path, 1, f"the include {include!r} does not exist")
            elif not {*self._names[_path(include)].defines} & {*takes}:
                yield Fault(path, 1, f"the include {include!r} is {how} and not used")

    def _idle_functions(self, path: str) -> Iterator[Fault]:
        """Functions that each call would define for nothing."""
        early = self._reached(self._needs[path])
        late = self._reached([name for file in (path, *early) for name in self._parts[file].marks.get("rarely", ())])
        everything = [self._names[file] for file in {path, *early, *late}]
        for file in early:
            names = self._names[file]
            for name in sorted(names.functions - names.used_here):
                if not any(name in other.takes for other in everything):
                    yield Fault(path, 1, f"the function {name!r} of {file} is defined and not used")

    def _reached(self, includes: Sequence[str]) -> list[str]:
        """The paths of these includes and of all that they need."""
        found: list[str] = []
        left = [_path(include) for include in includes]
        while left:
            path = left.pop()
            if path in self._parts and path not in found:
                found.append(path)
                left += [_path(include) for include in self._needs[path]]
        return sorted(found)

    def _offered(self, includes: Sequence[str]) -> set[str]:
        """The names of these includes."""
        return {name for each in includes if _path(each) in self._names for name in self._names[_path(each)].defines}

    def _given(self, path: str) -> set[str]:
        by_turns = ("shards",) if "each" in self._parts[path].marks else ()
        return {*GIVEN, "lacking", *by_turns, *(f"has_{feature}" for feature in FEATURES)}

    def _defining(self, name: str) -> list[str]:
        return [path for path, names in self._names.items() if _is_include(path) and name in names.defines]

    def _hint(self, name: str) -> str:
        return "".join(f", but in {path}" for path in self._defining(name)[:1])

    def _is_used_elsewhere(self, path: str, name: str) -> bool:
        """Whether a file that includes this one uses the name."""
        include = Path(path).stem
        return _is_include(path) and any(
            (include in self._needs[other] and name in self._names[other].takes)
            or (include in part.marks.get("rarely", ()) and name in self._names[other].rarely)
            for other, part in self._parts.items()
        )


def _path(include: str) -> str:
    return f"include/{include}.lua"


def _is_include(path: str) -> bool:
    return path.startswith("include/")


def texts_of(folder: Path = LUA) -> dict[str, str]:
    """The files of a folder of scripts, by their paths in it."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.glob("*/*.lua"))}


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    found = faults(texts_of())
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
