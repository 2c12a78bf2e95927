"""The faults of mutants.toml fit the tree, so that `make nightly` can put them in."""

from pathlib import Path

import pytest

from tests.mutants.runner import ROOT, Mutant, main, mutants, outcome_of

MUTANTS = mutants()
SOURCE = "def half(n):\n    return n // 2\n"
TEST = "from half import half\n\ndef test_half():\n    assert half(4) == 2\n"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_fits(name: str) -> None:
    """Its text stands once in its file, is changed, and its tests exist."""
    mutant = MUTANTS[name]

    assert mutant.fits(ROOT), f"{name}: `before` does not stand once in {mutant.file}, or a test of it is gone"
    assert mutant.before != mutant.after
    assert mutant.why.endswith(".")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one function and its test."""
    (tmp_path / "half.py").write_text(SOURCE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = nightly\n")
    (tmp_path / "test_half.py").write_text(TEST)
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [("n // 2", "n // 3", "killed"), ("n // 2", "n - 2", "survived"), ("n / 2", "n", "does not fit")],
)
def test_the_runner_tells_killed_from_survived(tree: Path, before: str, after: str, outcome: str) -> None:
    """A mutant is killed if a test of it fails, and the tree is as before afterwards."""
    assert outcome == outcome_of(Mutant("half.py", before, after, "It is a test.", ["test_half.py"]), tree)
    assert SOURCE == (tree / "half.py").read_text()


def test_a_name_that_is_unknown_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence names it, and no mutant is tried."""
    assert 2 == main(["no-such-mutant"])
    assert "no-such-mutant" in capsys.readouterr().err
