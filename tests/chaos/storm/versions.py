"""Processes of another version of the library, beside those of this one."""

import subprocess
import sys
from hashlib import sha1
from pathlib import Path

import msgspec

from lowkiq_lambda.store.shard.scripts import Script, script
from tests.kit.daemons import PYTHONPATH, clean_environment


def upgraded_script(name: str, groups: tuple[str, ...] = ()) -> Script:
    """The script as the next version of the library might have it: the same contract, another text, another hash."""
    source = f"{script(name, groups).source}\n-- of the next version"
    sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
    return msgspec.structs.replace(script(name, groups), source=source, sha=sha)


class OtherProcess:
    """A function of the actors with the package in a folder, and its tests' own; as a process of multiprocessing."""

    def __init__(self, package: Path, act: str, scene: str, number: int) -> None:
        environment = {**clean_environment(), "PYTHONPATH": f"{package}:{PYTHONPATH}"}
        # Its own folder comes before the path.
        command = [sys.executable, "-m", "tests.chaos.storm.actors", act, scene, str(number)]
        self._process = subprocess.Popen(command, cwd=package, env=environment, start_new_session=True)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL. AssertionError if it has ended by itself: a storm without it proves nothing of its version."""
        assert (self._process.poll() or 0) <= 0, f"a process of another version ended: {self._process.returncode}"
        self._process.kill()

    def join(self) -> None:
        """Wait for its end."""
        self._process.wait()
