"""A page of instructions, followed to the letter in an empty folder: files are written, commands run."""

import doctest
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from tests.kit.daemons import clean_environment
from tests.kit.embedded import end_server
from tests.kit.servers.ports import HOST, free_port
from tests.kit.waiting import eventually

FOLLOWED: Final = {
    "docs/django.md",
    "docs/fastapi.md",
    "docs/fuzzing.md",
    "docs/game-day.md",
    "docs/new-project.md",
    "docs/testing.md",
    "docs/tutorial.md",
}
"""The pages of files and commands that build on each other."""
EXTRAS: Final = "local,aws,fastapi,django"
"""Those of the package that the pages have installed."""

_BLOCK: Final = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<kind>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"(?P<adds>Add to )?`(?P<name>[\w/.]+\.(?:py|toml|html))`")
_STAYS: Final = re.compile(r"uvicorn|lowkiq run|make run|python manage\.py (?:runserver|lowkiq_run)")
"""Commands that run until they are stopped."""
_SHOWS: Final = re.compile(r"The (first|second|third) terminal shows")
_GOES: Final = re.compile(r" && cd (?P<folder>\w+)$")
"""Behind a command: the folder that the next ones run in."""
_NUMBERS: Final = {"first": 0, "second": 1, "third": 2}
_PORT: Final = "8000"
_EXIT_CODE: Final = re.compile(r"exit code (\d+)")
_DONE_BEFORE: Final = ("pip install", "python3 -m venv", "source ", "mkdir shop && cd shop")
"""The folder is empty, and its environment is there."""
_SHOWN: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A block of a page: the line before it, its language, its text."""

    before: str
    kind: str
    text: str


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks, in order."""
    for found in _BLOCK.finditer(page.read_text()):
        yield Block(found["before"], found["kind"], found["text"])


class Follower:
    """Does what a page says: writes a block behind a line that begins with "`FILE`", adds one behind "Add to `FILE`".

    Other Python is run as a program. Commands run in the folder, with the programs of `python`; those that stay run to
    the end, each in a terminal of its own. Behind "&& cd FOLDER" they run in that one, a new project. What is shown
    below a command must be its output, and what "the first terminal shows" must come there. Where the line before a
    block names an "exit code", its commands end with that one, and errors are shown too. Port 8000 is another one each
    time.
    """

    def __init__(self, folder: Path, python: Path, **settings: str) -> None:
        self.folder = folder
        self.port = free_port()
        self._python = python
        self._settings = settings
        self._terminals: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._terminals):
            # Programs that reload themselves are two processes.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            process.wait(60)
        end_server(self.folder / ".lowkiq")

    @property
    def _environment(self) -> Mapping[str, str]:
        path = os.pathsep.join([str(self._python.parent), os.environ["PATH"]])
        environment = {**clean_environment(), "PATH": path, "PYTHONPATH": "", **self._settings}
        # With bytecode, as people have it: without, each command would compile all that it imports.
        del environment["PYTHONDONTWRITEBYTECODE"]
        # The machine of the tests may be a container in a cluster.
        return {"LOWKIQ_ENV": "development", **environment}

    def follow(self, page: Path) -> None:
        """Do all of it."""
        for block in blocks_of(page):
            self._do(Block(block.before, block.kind, block.text.replace(_PORT, str(self.port))))

    def terminal(self, number: int) -> str:
        """What the terminal of a command that stays has shown; 0 is the first."""
        return (self.folder / f"terminal-{number}.log").read_text()

    def _do(self, block: Block) -> None:
        if block.kind == "console":
            for command in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                code = _EXIT_CODE.search(block.before)
                line, _, shown = command.partition("\n")
                self._run(line, shown, code=int(code[1]) if code else 0)
        elif shows := _SHOWS.match(block.before):
            number, shown = _NUMBERS[shows[1]], block.text.strip()
            eventually(lambda: shown in self.terminal(number), 30, f"{shown!r} in terminal {number}")
        elif block.kind != "text":
            self._write(block)

    def _write(self, block: Block) -> None:
        file = _FILE.match(block.before)
        if file is None:
            self._run("python -", "", block.text)
            return
        path = self.folder / file["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if file["adds"] else "w") as written:
            written.write(block.text)

    def _run(self, command: str, shown: str, given: str = "", code: int = 0) -> None:
        if command.startswith(_DONE_BEFORE):
            return
        if _STAYS.match(command):
            self._start(command)
            return
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self._environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if code else subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
        assert code == done.returncode, f"$ {command}\n{done.stdout}{done.stderr}{given}"
        if shown.strip():
            told = f"$ {command}\nshown:\n{shown}\nprinted:\n{done.stdout}"
            assert doctest.OutputChecker().check_output(shown.strip() + "\n", done.stdout.strip() + "\n", _SHOWN), told
        if goes := _GOES.search(command):
            self._enter(goes["folder"])

    def _enter(self, project: str) -> None:
        self.folder /= project
        # What `make` would install there takes half a minute, and is at hand.
        (self.folder / ".venv").symlink_to(self._python.parents[1])
        (self.folder / ".venv" / ".done").touch()

    def _start(self, command: str) -> None:
        with (self.folder / f"terminal-{len(self._terminals)}.log").open("wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env={**self._environment, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        number = len(self._terminals)
        self._terminals.append(process)
        if str(self.port) in command:
            eventually(self._listens, 60, f"{command!r} at its port: {self.terminal(number)}")

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            return True
        return False


def main(page: str, folder: str, python: str) -> None:
    """Follow the page in that folder, with the programs beside that Python."""
    with Follower(Path(folder), Path(python)) as newcomer:
        newcomer.follow(Path(page))


if __name__ == "__main__":
    main(*sys.argv[1:])
