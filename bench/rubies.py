"""Sidekiq and Lowkiq on the same work, where they are installed: each runs its own program on a small script of ours.

Debian has `ruby-sidekiq ruby-hiredis ruby-connection-pool ruby-rack`; of Lowkiq, which needs them too, a checkout is
named by LOWKIQ_DIR.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from bench.peer import THREADS, Peer

_SCRIPTS: Final = Path(__file__).parent / "ruby"
_TOLD: Final = "seconds "


def rubies() -> Iterator[Peer]:
    """Those that can run here."""
    ruby, sidekiq, lowkiq = shutil.which("ruby"), shutil.which("sidekiq"), os.environ.get("LOWKIQ_DIR")
    if ruby and sidekiq:
        script = str(_SCRIPTS / "sidekiq_blank.rb")
        yield _peer("Sidekiq, hiredis", [ruby, script], [sidekiq, "-r", script, "-c", str(THREADS)])
    if ruby and lowkiq:
        script, with_library = str(_SCRIPTS / "lowkiq_blank.rb"), [ruby, "-I", f"{lowkiq}/lib"]
        for size in (1, 100):
            name, working = f"Lowkiq, hiredis, batch_size {size}", [f"{lowkiq}/exe/lowkiq", "-r", script]
            yield _peer(name, [*with_library, script], [*with_library, *working], size)


def _peer(name: str, pushing: Sequence[str], working: Sequence[str], batch_size: int = 1) -> Peer:
    return Peer(name, partial(_run, pushing, batch_size), partial(_run, working, batch_size))


def _run(command: Sequence[str], batch_size: int, url: str, jobs: int) -> float:
    """Seconds that the program says it took for the jobs; it is ended then."""
    settings = {"URL": url, "JOBS": jobs, "THREADS": THREADS, "BATCH_SIZE": batch_size}
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout or ():
                if line.startswith(_TOLD):
                    return float(line.removeprefix(_TOLD))
        finally:
            process.kill()
    raise RuntimeError(f"{command[0]} ended before its jobs were done")
