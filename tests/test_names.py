"""One word for one thing: class names, and the glossary beside the names in the code."""

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Final, get_args

import msgspec
import pytest

import lowkiq_lambda
from lowkiq_lambda import Config, dashboard
from lowkiq_lambda.engine.budget import STOP_REASONS
from lowkiq_lambda.jobs.job import Obstacle, Outcome
from lowkiq_lambda.views.queues import Metrics

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
MOST_TERMS: Final = 60
"""Words that one can learn in an evening."""


NO_NOUNS: Final = frozenset(
    (
        "found",
        "given",
        "told",
        "asked",
        "said",
        "says",
        "hears",
        "heard",
        "known",
        "wanted",
        "chosen",
        "shown",
        "seen",
        "named",
    )
)
"""Participles and verbs of speech. A variable is a noun: it says what the value is, not what was done with it."""


def variables(module: Path) -> set[str]:
    """The names of a module's local variables and parameters."""
    nodes = [*ast.walk(ast.parse(module.read_text()))]
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    fields = {
        target.id
        for one in nodes
        if isinstance(one, ast.ClassDef)
        for line in one.body
        for target in ([line.target] if isinstance(line, ast.AnnAssign) else getattr(line, "targets", []))
        if isinstance(target, ast.Name)
    }
    return stored - fields | {node.arg for node in nodes if isinstance(node, ast.arg)}


def quoted(page: Path) -> set[str]:
    """The names in code spans of a page's tables and text."""
    spans = re.findall(r"`([^`\n]+)`", page.read_text())
    return {word for span in spans for word in re.findall(r"\w+", span)}


def terms() -> list[str]:
    """The words that the glossary explains, in its order."""
    return re.findall(r"^\| \*\*([^*]+)\*\* \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)


def test_no_class_name_is_defined_twice() -> None:
    """A name says which class is meant, wherever it is read."""
    # One tree after another: many at once cost the garbage collector more than reading.
    trees = (ast.parse(path.read_text()) for path in sorted((ROOT / "lowkiq_lambda").rglob("*.py")))
    found = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))

    assert set() == {name for name, times in found.items() if times > 1}


def test_variables_are_nouns() -> None:
    """A reader learns from the name which value it is."""
    modules = {module: variables(module) for module in sorted((ROOT / "lowkiq_lambda").rglob("*.py"))}

    assert {"name", "queue", "shard"} < set[str]().union(*modules.values())
    assert {} == {str(module): names & NO_NOUNS for module, names in modules.items() if names & NO_NOUNS}


def test_the_glossary_has_each_word_once() -> None:
    """A term has one row, and so one meaning."""
    assert len(set(terms())) == len(terms())


def test_the_glossary_is_short() -> None:
    """It has the words that a user of the library meets; a page explains the internal words that it uses."""
    assert len(terms()) <= MOST_TERMS


def test_public_names_are_explained() -> None:
    """Whatever the package exports stands in the glossary, or in a table of a page that it names."""
    pages = [DOCS / name for name in ("glossary.md", "redis.md", "dashboard.md", "reference/errors.md")]
    explained = set[str]().union(*map(quoted, pages))

    assert set() == {*lowkiq_lambda.__all__, *dashboard.__all__} - explained


def test_settings_are_explained() -> None:
    """Each setting stands in a page of the docs."""
    explained = set[str]().union(*map(quoted, DOCS.glob("**/*.md")))

    assert set() == {field.name for field in msgspec.structs.fields(Config)} - explained


def test_outcomes_are_terms() -> None:
    """Each outcome is explained under the word that the code, the wire and the metrics have for it."""
    assert set() == {*get_args(Outcome), "failed"} - set(terms())


def test_stop_reasons_have_their_table() -> None:
    """The reasons that an invocation may answer stand in their table, in order."""
    table = (DOCS / "lambda.md").read_text().partition("| reason | a shard was left because |")[2].partition("\n\n")[0]

    assert [*STOP_REASONS] == re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert set(get_args(Obstacle)) <= set(STOP_REASONS)


@pytest.mark.parametrize("name", Metrics.__struct_fields__)
def test_counters_are_explained(name: str) -> None:
    """Each number of `app.operate.metrics()` is explained where operators look for it."""
    assert name in quoted(DOCS / "operations.md")


def test_the_way_of_a_job_names_files_that_exist() -> None:
    """Each hop of the architecture's walk is found where it says."""
    rows = re.findall(r"^\| \d+ \| (.+?) \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    files = [name for row in rows for name in re.findall(r"`([a-z_/]+\.(?:py|lua))`", row)]

    assert len(rows) > 20
    assert [] == [name for name in files if not [*(ROOT / "lowkiq_lambda").rglob(name)]]
