"""Puts the app's own code into a package."""

import shutil
from pathlib import Path
from typing import Final

from lowkiq_lambda.stack.packaging.locked import NEVER_PACKED
from lowkiq_lambda.stack.packaging.targets import BuildFailed

REQUIREMENTS: Final = "requirements.txt"
COPIED: Final = "app"
"""The name of a package whose folder SAM has copied: it gives the copy a name of its own."""


def copy_app(app: Path, into: Path, name: str) -> None:
    """Copy the code to where the function imports it from. Raises BuildFailed.

    A folder that is a Python package goes in as that package, so that `app.jobs:app` names the same app here and in
    the function. Of any other folder, what is in it goes to the top.
    """
    if (app / "__init__.py").exists():
        into /= name
        if into.exists():
            raise _taken(name)
    never = shutil.ignore_patterns(*NEVER_PACKED, REQUIREMENTS)
    names = [path.name for path in app.iterdir()]
    for each in sorted({*names} - never(str(app), names)):
        if (into / each).exists():
            raise _taken(each)
    shutil.copytree(app, into, dirs_exist_ok=True, ignore=never)


def _taken(name: str) -> BuildFailed:
    return BuildFailed(f"The app's {name} would take the place of a package of that name: call it otherwise.")
