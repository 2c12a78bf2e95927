"""The reference pages of the docs say what the code says."""

import inspect
import re
from pathlib import Path
from typing import Final

import msgspec
import pytest

import lowkiq_lambda
from lint.reference import template
from lint.reference.__main__ import main
from lint.reference.pages import PAGES, place_of, text_of
from lint.reference.sources import ROOT, field_docs
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.settings.config import Config, variable_of
from tests.kit.templates import parsed_templates

FOLDER = ROOT / "docs" / "reference"

MOST_OF_AN_APP: Final = 53
"""Fields of `Config`, those of Lowkiq included."""
MOST_IN_ALL: Final = 78
"""With those of the functions and of the dashboard."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_the_code_says(name: str) -> None:
    """`make reference` writes them anew."""
    assert text_of(name) == (ROOT / place_of(name)).read_text()


def test_stale_pages_are_told_and_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The check writes nothing; the program writes what is missing or not as the code says, and no more."""
    codes = [main(["--check"], tmp_path), main([], tmp_path), main(["--check"], tmp_path)]
    (tmp_path / place_of("errors.md")).write_text("# Errors\n")
    codes += [main(["--check"], tmp_path), main([], tmp_path)]
    told = capsys.readouterr()

    assert [1, 0, 0, 1, 0] == codes
    assert [f"wrote {place_of(name)}" for name in (*PAGES, "errors.md")] == told.out.splitlines()
    assert "docs/reference/errors.md is not as the code says: make reference\n" in told.err


def test_each_setting_has_its_variable_and_its_meaning() -> None:
    """Those of an app, of the functions and of the dashboard; each row has its last cell."""
    page = (FOLDER / "settings.md").read_text()
    rows = [row.split(" | ") for row in page.splitlines() if row.startswith("| `")]

    assert set() == {variable_of(name) for name in Config.kinds()} - set(re.findall(r"`(LOWKIQ_\w+)`", page))
    assert [] == [row[0] for row in rows if len(row[-1].strip("| ")) < 10]


def test_settings_stay_few() -> None:
    """Whoever sets a thing has to read about all: a new setting takes the place of one, or is worth a higher number."""
    counts = [len(msgspec.structs.fields(kind)) for kind in (Config, Settings, DashboardSettings)]

    assert counts[0] <= MOST_OF_AN_APP
    assert sum(counts) <= MOST_IN_ALL


def test_each_setting_has_one_sentence() -> None:
    """A reader of the page gets it from the first; what needs more has a page of its own."""
    docs = {name: text for kind in (Config, Settings, DashboardSettings) for name, text in field_docs(kind).items()}

    assert [] == [name for name, text in docs.items() if not text.endswith(".")]
    assert [] == [name for name, text in docs.items() if re.search(r"\.\s", text)]


def test_each_public_error_has_its_row() -> None:
    """What the package exports of errors is explained."""
    exported = {name for name in lowkiq_lambda.__all__ if is_error(getattr(lowkiq_lambda, name))}
    explained = set(re.findall(r"^\| `(\w+)`", (FOLDER / "errors.md").read_text(), re.MULTILINE))

    assert set() == exported - explained


def test_parameters_are_read_as_cloudformation_reads_them() -> None:
    """Names, defaults and descriptions; each stands in a group once."""
    there = parsed_templates()["template"]
    text = (ROOT / "template.yaml").read_text()
    read = template.parameters(text)
    grouped = [name for _, names in template.groups(text) for name in names]

    expected = [(name, str(one["Default"]), one["Description"]) for name, one in there["Parameters"].items()]
    assert expected == [(one.name, one.default, one.description) for one in read]
    assert sorted(there["Parameters"]) == sorted(grouped)


def is_error(value: object) -> bool:
    """Whether it is a class of errors of ours."""
    return inspect.isclass(value) and issubclass(value, LowkiqError)
