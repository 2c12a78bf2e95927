"""The pages by their names."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from lint.reference import cli, errors, features, metrics, settings, template
from lint.reference.sources import ROOT

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "cli.md": cli.page,
    "settings.md": settings.page,
    "errors.md": errors.page,
    "features.md": features.page,
    "metrics.md": metrics.page,
    "template.md": template.page,
}
FOLDER: Final = ROOT / "docs" / "reference"
_NOTE: Final = "\n<!-- Made of the code by `make reference`: a change here is lost. -->\n"


@cache
def text_of(name: str) -> str:
    """The page as the code says it."""
    head, _, rest = PAGES[name]().partition("\n")
    return f"{head}\n{_NOTE}{rest.rstrip()}\n"


def is_current(name: str, folder: Path = FOLDER) -> bool:
    """Whether the page in the folder says what the code says."""
    path = folder / name
    return path.exists() and path.read_text() == text_of(name)


def write(name: str, folder: Path = FOLDER) -> None:
    """Write the page."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text_of(name))
