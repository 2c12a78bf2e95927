"""The runtime that a package of a function was built for, and the error on any other."""

import platform
import sys
from pathlib import Path
from typing import Final

NAME: Final = "built_for.txt"
"""At the top of the library in a package, written by `lowkiq stack build`: such as python3.13-arm64."""

_MACHINES: Final = {"aarch64": "arm64"}


def refuse_other_runtime(folder: Path = Path(__file__).parents[1]) -> None:
    """Raise ImportError if this is a package for another Python or processor; its compiled modules are not found."""
    if not (folder / NAME).exists():
        return
    built_for = (folder / NAME).read_text(encoding="utf-8").strip()
    machine = platform.machine()
    here = f"python3.{sys.version_info[1]}-{_MACHINES.get(machine, machine)}"
    if built_for != here:
        raise ImportError(
            f"The package was built for {built_for} and the function runs {here}. Give sam build and sam deploy the "
            "same Runtime and Architecture: --parameter-overrides on the command line replaces those of samconfig.toml."
        )
