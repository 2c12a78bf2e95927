"""The pages by their names, and the files of the Terraform module that are made of the template."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from lint.reference import cli, errors, features, metrics, settings, template, terraform
from lint.reference.sources import ROOT

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "cli.md": cli.page,
    "settings.md": settings.page,
    "errors.md": errors.page,
    "features.md": features.page,
    "metrics.md": metrics.page,
    "template.md": template.page,
    "variables.tf": terraform.variables,
    "rules.tf": terraform.rules,
}
FOLDERS: Final = {".md": "docs/reference", ".tf": "infra/terraform"}
"""Where the pages are, and the files of the Terraform module, by their endings."""
_NOTE: Final = "\n<!-- Made of the code by `make reference`: a change here is lost. -->\n"


@cache
def text_of(name: str) -> str:
    """The page as the code says it."""
    text = PAGES[name]()
    if name.endswith(".tf"):
        return text
    head, _, rest = text.partition("\n")
    return f"{head}\n{_NOTE}{rest.rstrip()}\n"


def place_of(name: str) -> str:
    """The page, seen from the checkout."""
    return f"{FOLDERS[PurePosixPath(name).suffix]}/{name}"


def is_current(name: str, root: Path = ROOT) -> bool:
    """Whether the page below the root says what the code says."""
    path = root / place_of(name)
    return path.exists() and path.read_text() == text_of(name)


def write(name: str, root: Path = ROOT) -> None:
    """Write the page."""
    path = root / place_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(name))
