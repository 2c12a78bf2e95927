"""The name of a project: a folder, a stack on AWS, and what its functions are called there."""

import keyword
import re
import sys
from pathlib import Path
from typing import Final

from lowkiq_lambda.base.errors import ConfigError

_FORM: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_MOST: Final = 40
"""Letters: the longest name of a function or a role in the stack has some twenty more, and Lambda allows 64."""
_TAKEN: Final = {"app", "lowkiq", "lowkiq_lambda", "test", "tests", "web"}


class NameRefused(ConfigError):
    """A project cannot have this name."""


def check_name(name: str, parent: Path) -> None:
    """Raise NameRefused, in a sentence."""
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise NameRefused(f"{name!r} is a keyword of Python: call the project otherwise.")
    if not _FORM.fullmatch(name):
        raise NameRefused(
            f"{name!r} cannot be the name of a project: it needs small letters, digits, and - or _ between them, and "
            "begins with a letter, such as shop or web-shop."
        )
    if len(name) > _MOST:
        raise NameRefused(f"{name!r} has {len(name)} letters, and the names of its functions have room for {_MOST}.")
    module = name.replace("-", "_")
    if module in _TAKEN:
        raise NameRefused(f"{name!r} is a name of the tools or in the project itself: call the project otherwise.")
    if module in sys.stdlib_module_names:
        raise NameRefused(f"{name!r} is a module of Python's own: call the project otherwise.")
    if (parent / name).exists():
        raise NameRefused(f"There is a {parent / name} already: take another name, or move it away.")
