"""The reference of the API has every public name, and the site tells of each."""

import importlib
import re
from pathlib import Path
from typing import Any, Final

import pytest

from docs_build.links import Page
from lowkiq_lambda import Lowkiq
from lowkiq_lambda.declare.pushable import OfOtherLibrary

ROOT = Path(__file__).parents[2]
ENTRIES: Final = [
    name
    for page in sorted((ROOT / "docs" / "reference").glob("api-*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
]
OF_AN_APP: Final = "lowkiq_lambda.Lowkiq."
EXPORTING: Final = [
    "lowkiq_lambda",
    "lowkiq_lambda.contrib.django",
    "lowkiq_lambda.contrib.outbox",
    "lowkiq_lambda.dashboard",
    "lowkiq_lambda.iterate",
    "lowkiq_lambda.contrib.otel",
    "lowkiq_lambda.testing",
]

pytestmark = pytest.mark.xdist_group("docs_site")


def named(entry: str) -> Any:
    """What an entry is of: a class or a function of a module."""
    module, _, name = entry.rpartition(".")
    return getattr(importlib.import_module(module), name)


def members(of: type) -> set[str]:
    """The public names of a class that are ours; those that only answer to a habit are absent."""
    ours = [kind for kind in of.__mro__ if kind.__module__.startswith("lowkiq_lambda")]
    names = {name for kind in ours for name in (*vars(kind), *kind.__annotations__) if not name.startswith("_")}
    return {name for name in names if not any(isinstance(vars(kind).get(name), OfOtherLibrary) for kind in ours)}


@pytest.mark.parametrize("module", EXPORTING)
def test_every_name_that_a_module_exports_has_an_entry(module: str) -> None:
    """Each name of `__all__` stands in the reference, once."""
    exported = [f"{module}.{name}" for name in importlib.import_module(module).__all__]

    assert dict.fromkeys(exported, 1) == {name: ENTRIES.count(name) for name in exported}


def test_every_member_of_an_app_has_an_entry() -> None:
    """They stand by purpose, and none is left out but `core`, which is private by contract."""
    public = {f"{OF_AN_APP}{name}" for name in dir(Lowkiq()) if not name.startswith("_")} - {f"{OF_AN_APP}core"}

    assert public == {entry for entry in ENTRIES if entry.startswith(OF_AN_APP)}


def test_the_site_tells_of_every_entry_and_of_its_members(site: Path) -> None:
    """Each name, and each public member of a class, can be linked to."""
    anchors: set[str] = set()
    for page in (site / "reference").glob("api-*.html"):
        anchors |= Page(page.read_text()).anchors

    wanted = {*ENTRIES}
    for entry in ENTRIES:
        if not entry.startswith(OF_AN_APP) and isinstance(of := named(entry), type):
            wanted |= {f"{entry}.{name}" for name in members(of)}

    assert set() == wanted - anchors
