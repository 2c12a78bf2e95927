"""The packages of the template's functions, as `sam build` makes them here."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.kit.templates import ROOT, TOOLS

MACHINE: Final = "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"
HERE: Final = f"python3.{sys.version_info[1]}-{MACHINE}"
"""The runtime and architecture of this machine."""


def sam_built(folder: Path) -> Path:
    """What `sam build` makes of a checkout with a blank in its path, for this machine's Python and processor."""
    checkout = folder / "my checkout"
    never = shutil.ignore_patterns("__pycache__")
    for part in ("app", "infra", "lowkiq_lambda", "requirements"):
        shutil.copytree(ROOT / part, checkout / part, ignore=never)
    for name in ("template.yaml", "samconfig.toml"):
        shutil.copy(ROOT / name, checkout)
    program = TOOLS / "sam"
    assert program.exists(), f"there is no {program}: run `make setup`"
    runtime, _, architecture = HERE.partition("-")
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "SAM_CLI_TELEMETRY": "0",
    }
    done = subprocess.run(
        [program, "build", "--parameter-overrides", f"Runtime={runtime} Architecture={architecture}"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return checkout / ".aws-sam" / "build"
