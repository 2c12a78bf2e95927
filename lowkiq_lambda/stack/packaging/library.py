"""Puts the library itself into a package: the one that builds, without what the function does not need."""

import shutil
from pathlib import Path
from typing import Final

from lowkiq_lambda.base import target as built_for
from lowkiq_lambda.stack.packaging.locked import NEVER_PACKED
from lowkiq_lambda.stack.packaging.targets import BuildTarget

LIBRARY: Final = "lowkiq_lambda"
PACKED_WITH_PAGES: Final = "DashboardFunction"

_OWN: Final = Path(__file__).parents[2]
# The daemon, what is for a command line, a web server or a project's folder, and the helpers of users' tests.
_NOT_IN_LAMBDA: Final = {
    LIBRARY: {"__main__.py", "cli", "local", "stack", "testing"},
    "contrib": {"asgi.py"},
    "aws": {"drain_schedules"},
    "operate": {"doctor"},
}
_PAGES: Final = {LIBRARY: {"dashboard"}}
# What an earlier build may have left.
_MADE_HERE: Final = {"dashboard": {"compiled"}}


def copy_library(function: str, target: BuildTarget, into: Path) -> None:
    """Copy what the function needs of the library into the package's folder.

    It takes the place of a library that the app's requirements brought along: that one is whole, and may be of another
    version than the template.
    """
    for brought in (*into.glob(f"{LIBRARY}-*.dist-info"), into / LIBRARY):
        shutil.rmtree(brought, ignore_errors=True)
    never = shutil.ignore_patterns(*NEVER_PACKED)
    without = [_NOT_IN_LAMBDA, _MADE_HERE if function == PACKED_WITH_PAGES else _PAGES]

    def left_out(folder: str, names: list[str]) -> set[str]:
        return never(folder, names).union(*(one.get(Path(folder).name, set()) for one in without))

    shutil.copytree(_OWN, into / LIBRARY, ignore=left_out)
    (into / LIBRARY / built_for.NAME).write_text(f"{target}\n", encoding="utf-8")
