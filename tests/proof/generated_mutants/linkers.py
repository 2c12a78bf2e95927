"""Scripts that are linked from changed files: with a fault in one, or so that they count which lines they execute."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from pathlib import Path
from typing import Final, NamedTuple, Self, cast

import msgspec
import redis

from lint.lua import LUA
from lowkiq_lambda.store.shard import scripts
from lowkiq_lambda.store.shard.scripts import Linker, Script
from tests.proof.generated_mutants.places import LuaMutant, files_of, opaque, text_of

COUNTED: Final = ("include", "drain", "push", "move", "operate")
"""The folders whose lines are counted."""
LINES: Final = "executed lines of scripts"
"""The hash in which a run counts them."""
_COUNTING: Final = f"""end
local is_sound, answer = pcall(whole)
for line in pairs(ARGV) do
  if type(line) == 'string' then redis.call('HINCRBY', '{LINES}', line, 1) end
end
if not is_sound then error(answer, 0) end
return answer"""
_ONE_LINER: Final = re.compile(r"(local function \w+\([^)]*\)) ")
_GOES_ON: Final = re.compile(r"(?:[-+*/%<>=(,{~.]|\band|\bor|\bnot|\breturn)\s*$")
_NO_STATEMENT: Final = re.compile(r"\s*(?:end|else|elseif|until|and|or|then|do)\b|\s*[-+*/%.)}\],]|\s*$")


class ExecutedLine(NamedTuple):
    """A line of a file."""

    file: str
    line: int


class CountingLinker(Linker):
    """Links scripts that note each line that they execute in ARGV, by its name, and count them all at their end."""

    def script(self, name: str, features: tuple[str, ...] = ()) -> Script:
        """As the linker does."""
        linked = super().script(name, features)
        return _with_source(linked, f"local function whole()\n{linked.source}\n{_COUNTING}")


class ChangedScripts:
    """A copy of the folder of scripts, of which one file may have a fault at a time."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mutants-")
        self._root = Path(self._folder.name) / "lua"
        shutil.copytree(LUA, self._root)

    @contextmanager
    def fault(self, mutant: LuaMutant) -> Iterator[None]:
        """The scripts of this process have it in the block."""
        path, text = self._root / f"{mutant.file}.lua", text_of(mutant.file)
        path.write_text(mutant.of(text))
        try:
            with linked_by(Linker(self._root)):
                yield
        finally:
            path.write_text(text)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """The scripts of this process count the lines that they execute in the block."""
        for file in files_of(*COUNTED):
            (self._root / f"{file}.lua").write_text(counting_text(file))
        try:
            with linked_by(CountingLinker(self._root)):
                yield
        finally:
            for file in files_of(*COUNTED):
                (self._root / f"{file}.lua").write_text(text_of(file))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


@contextmanager
def linked_by(linker: Linker) -> Iterator[None]:
    """In the block this process links its scripts so."""
    before = scripts._linker
    vars(scripts)["_linker"] = linker
    scripts.script.cache_clear()
    try:
        yield
    finally:
        vars(scripts)["_linker"] = before
        scripts.script.cache_clear()


def executed(client: redis.Redis) -> set[ExecutedLine]:
    """What scripts have executed since they were asked last."""
    found = cast("list[bytes]", client.hkeys(LINES))
    client.delete(LINES)
    return {ExecutedLine(file, int(line)) for file, _, line in (name.decode().partition(":") for name in found)}


def counting_text(file: str) -> str:
    """The text of the file, with a note before each line that begins a statement."""
    lines, code, depth = text_of(file).split("\n"), "", 0
    for number, line in enumerate(lines, 1):
        now = opaque(line)
        note = f"ARGV['{file}:{number}'] = 1 "
        if depth == 0 and now.strip().strip("*") and not _GOES_ON.search(code) and not _NO_STATEMENT.match(now):
            lines[number - 1] = _noted(line, note, in_script=not file.startswith("include/"))
        depth += sum(map(now.count, "({[")) - sum(map(now.count, ")}]"))
        code = now if now.strip().strip("*") else code
    return "\n".join(lines)


def countable(file: str) -> set[ExecutedLine]:
    """The lines of the file that can be counted."""
    lines = counting_text(file).split("\n")
    return {ExecutedLine(file, number) for number, line in enumerate(lines, 1) if "ARGV['" in line}


def _noted(line: str, note: str, *, in_script: bool) -> str:
    if one_liner := _ONE_LINER.match(line):
        return f"{one_liner[1]} {note}{line[one_liner.end() :]}"
    # The linker looks for what an include defines at the beginning of its lines.
    if line.startswith(("local function", "function ")) or (line.startswith("local") and not in_script):
        return line
    return f"{note}{line}"


def _with_source(script: Script, source: str) -> Script:
    sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
    return msgspec.structs.replace(script, source=source, sha=sha)
