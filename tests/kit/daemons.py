"""Daemons in processes of their own."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMEOUT = 30.0
PYTHONPATH = os.pathsep.join([str(ROOT), str(Path(__file__).parent / "without_telemetry")])
"""Where processes that tests start find the package."""


class DaemonProcess:
    """`python -m lowkiq_lambda.local`, or another program, with these arguments; `log` holds what it prints."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        log: Path,
        cwd: Path = ROOT,
        program: str = "lowkiq_lambda.local",
    ) -> None:
        self._log = log
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", program, *arguments],
                cwd=cwd,
                env={**clean_environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                # Ctrl-C in the terminal of the tests is not for the daemon.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process."""
        return self.process.pid

    @property
    def log(self) -> str:
        """Its output so far."""
        return self._log.read_text()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Wait for its end."""
        return self.process.wait(TIMEOUT)

    def close(self) -> None:
        """End it, whatever it is doing."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of ours, and without those by which one `make` knows another."""
    others = {"REDIS_URL", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    kept = {name: value for name, value in os.environ.items() if "LOWKIQ" not in name and name not in others}
    # Bytecode would be taken for a module that is written anew within a second and is as long as before.
    return {**kept, "PYTHONPATH": PYTHONPATH, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"}
