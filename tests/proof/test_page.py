"""docs/proof.md has all that a proof makes, and a proof that found something says so."""

import re
from pathlib import Path

import pytest

from tests.proof import __main__ as program
from tests.proof import results, runs
from tests.proof.history import CLAIMS
from tests.proof.page import BLOCKS, KINDS, PAGE, filled, table
from tests.proof.results import (
    GuardResult,
    ModelResult,
    Models,
    MutantResult,
    Mutants,
    ProofRuns,
    ProofScene,
    Run,
    keep,
)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of these tests are kept apart."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)


def keep_all(*, violations: list[str], fault: str | None = None, is_seen: bool = True) -> None:
    """One small part of each kind."""
    keep("scene", ProofScene("1.0", "abc", "2026-01-01", "Valkey 8", "3.11", "Linux", 2, 4.0))
    model = ModelResult("lease", "2 payloads", 1_234, 5, 1.0, fault, 12, whole=False)
    keep("models", Models([model], [GuardResult("lease", "token", "P2", "P2", 99, 13)]))
    for kind in KINDS:
        done = {"payloads": 1_000, "handler runs": 800, "lost": 3, "again": 4}
        keep(kind, ProofRuns(kind, [Run(7, 60.0, done, {"primary killed": 10}, violations)]))
    keep("mutants", Mutants([MutantResult("lease ignored", "storm", is_seen, 2.0)]))


def test_the_page_has_each_part_of_a_proof() -> None:
    """A part that the page has no place for would be made for nothing."""
    text = PAGE.read_text()

    assert [*BLOCKS] == re.findall(r"<!-- proof: (\w+) -->", text)
    assert all(claim.words in text and claim.ends in text for claim in CLAIMS)
    assert KINDS.keys() == runs.RUNS.keys()


def test_blocks_are_filled_anew_and_prose_stays() -> None:
    """Filling a page twice changes nothing, and sentences between blocks are never touched."""
    keep_all(violations=[])
    before = PAGE.read_text()
    page = filled(before)

    assert page == filled(page)
    assert re.sub(r"(?s)-->.*?<!-- end", "", before) == re.sub(r"(?s)-->.*?<!-- end", "", page)
    assert " | 2 payloads: 1,234 |" in page
    assert "| lease | 1 | 99 | 13 |" in page
    assert "| storm | 1 | none | 2.0 |" in page
    assert "10 deaths of the primary lost 3, and 4 were performed once more" in page


def test_only_columns_of_numbers_are_to_the_right() -> None:
    """A reader compares numbers from their last digit, and words from their first letter."""
    rows = [("storm", "P1", "1,234", "2.5", ""), ("race", "none", "5", "10.0", "found")]

    assert "| --- | --- | ---: | ---: | --- |" == table(("run", "breaks", "steps", "seconds", ""), rows).splitlines()[1]


def test_a_block_whose_part_was_not_made_stays_as_it_is() -> None:
    """`--only models` says nothing of the runs of an earlier proof."""
    text = "<!-- proof: results -->\nearlier\n<!-- end -->\n"

    assert text == filled(text)


def test_what_is_wrong_is_on_the_page_and_decides_the_exit_code() -> None:
    """A violation with its seed, a model that breaks, a fault that nobody saw."""
    keep_all(violations=["P1: a: [2] began while [1] ran"], fault="P3", is_seen=False)

    found = program.faults()

    assert "storm 7: P1: a: [2] began while [1] ran" in found
    assert {"lease (2 payloads) breaks P3", "lease ignored was not found"} <= {*found}
    assert "- **violation** in race 7: P1: a: [2] began while [1] ran" in filled(PAGE.read_text())


def test_a_sound_proof_has_no_faults() -> None:
    """Then the command ends with 0."""
    keep_all(violations=[])

    assert [] == program.faults()


@pytest.mark.nightly("processes race for some seconds")
def test_a_proof_of_one_part_runs_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run of each kind of world that ends by itself soon; `--add` keeps it beside the next one."""
    monkeypatch.setattr(runs, "SECONDS", 1.0)
    monkeypatch.setattr(program, "write_page", lambda: None)

    codes = [program.main(["--only", "storm", "race", "--seed", "5", *more]) for more in ([], ["--add"])]

    kept = results.kept("race", ProofRuns)
    assert [0, 0] == codes, capsys.readouterr().err
    assert kept
    assert 2 == len(kept.runs)
    assert kept.done["payloads"] > 0
    assert (tmp_path / "storm.json").exists()
