"""Generated faults of the scripts: how they are made, which are looked for, and that runs find some of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kit.examples import examples, mostly_nightly
from tests.kit.servers import Server
from tests.proof import results
from tests.proof.generated_mutants import __main__ as program
from tests.proof.generated_mutants.equivalent import Equivalent, entries, stale
from tests.proof.generated_mutants.features import WORKLOADS
from tests.proof.generated_mutants.linkers import ChangedScripts, countable, counting_text, executed
from tests.proof.generated_mutants.places import files_of, mutants_of, opaque, text_of
from tests.proof.generated_mutants.score import AIMED, FILES, lines_of
from tests.proof.generated_mutants.world import ShardWorld
from tests.proof.page import PAGE, filled
from tests.proof.results import MutationScore, ScoredMutant, keep

BY_NAME: Final = {workload.name: workload for workload in WORKLOADS}
PLAIN: Final = BY_NAME["plain"]
FOUND: Final = {
    "include/turn": "if holder ~= nonce or current ~= token then return 'LOST' end",
    "include/let_go": "call('DEL', lease)",
    "include/lease": "call('HSET', meta, 'until', math.max(now + ttl, held_until), 'now', latest_now)",
    "include/recover": "call('DEL', flight)",
}
"""Lines without which the plain workload goes wrong soon."""


@pytest.fixture(scope="module")
def changed() -> Iterator[ChangedScripts]:
    """A copy of the scripts."""
    with ChangedScripts() as copy:
        yield copy


def test_a_fault_is_one_change_of_one_line() -> None:
    """Each is another text, and the change of a string or a comment is none."""
    mutants = mutants_of("include/turn")

    assert len({mutant.of(text_of(mutant.file)) for mutant in mutants}) == len(mutants)
    assert any("if holder ~= nonce and current" in mutant.after for mutant in mutants)
    assert "call(****, x) *********" == opaque("call('<=', x) -- and/or")
    assert not [mutant for mutant in mutants if "DAMAGED" in mutant.before]


def test_each_statement_of_a_script_is_counted(server: Server, changed: ChangedScripts) -> None:
    """What a run executes is part of what can be counted, and the scripts do what they do otherwise."""
    world = ShardWorld(server, PLAIN)
    with changed.counting():
        assert [] == world.play(0)
    world.close()

    lines = executed(server.admin)
    assert {line for line in lines if line.file == "include/turn"} <= countable("include/turn")
    assert lines <= {line for file in files_of("include", "drain", "push", "operate") for line in countable(file)}
    assert "ARGV['include/let_go:5'] = 1   call('DEL', lease)" in counting_text("include/let_go")


@pytest.mark.parametrize("name", mostly_nightly(BY_NAME, "in trouble", "side by side", "tenants"))
def test_a_run_over_sound_scripts_is_sound(server: Server, name: str) -> None:
    """Whatever the network and the deaths of holders do."""
    world = ShardWorld(server, BY_NAME[name])

    assert [] == [words for seed in range(examples(12)) for words in world.play(seed)]
    world.close()


@pytest.mark.parametrize("file", mostly_nightly(FOUND, "include/recover", "include/let_go"))
def test_a_planted_fault_is_found(server: Server, changed: ChangedScripts, file: str) -> None:
    """By one of the first runs; the scripts are whole again afterwards."""
    (mutant,) = [mutant for mutant in mutants_of(file) if mutant.key == (file, FOUND[file], "")]
    world = ShardWorld(server, PLAIN)
    with changed.fault(mutant):
        assert any(world.play(seed) for seed in range(40))

    assert [] == world.play(0)
    world.close()


def test_each_equivalent_fault_is_still_one() -> None:
    """A line that has changed since makes its entry stale; each has a reason."""
    assert [] == stale(entries())
    assert all(one.why.endswith(".") for one in entries())
    gone = Equivalent("include/turn", "no such line", "", "It is gone.")
    assert [gone] == stale([gone])


def test_a_line_that_cannot_be_counted_goes_with_the_one_above() -> None:
    """So a fault in the second line of a statement is looked for where the statement runs."""
    mutants = mutants_of("include/claim_beside")

    assert all(line.line <= mutant.line for mutant, line in lines_of(mutants).items())
    assert {*AIMED} <= {*FILES}


def test_the_score_is_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By file, with the lines of faults that were not found, and the lines that no run executes."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    outcomes = ("found", "found", "not found", "equivalent", "not proved")
    made = [ScoredMutant("include/turn", at, f"change {at}", outcome, 1.0) for at, outcome in enumerate(outcomes)]
    before = MutationScore([ScoredMutant("include/put", 1, "change", "found", 1.0)], None, 60.0, {"include/put": [7]})

    keep("score", MutationScore(made, None, 60.0, {"include/turn": [9]}).beside(before))
    page = filled(PAGE.read_text())

    assert "| `include/turn` | 2 | 1 | 1 | 1 | 67% | 2 | 9 |" in page
    assert "| `include/put` | 1 | 0 | 0 | 0 | 100% | none | 7 |" in page


@pytest.mark.nightly("thirty faults take a minute or two")
@pytest.mark.timeout(900)
def test_most_of_the_faults_that_are_drawn_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the files that carry what is promised of a lease and of the order."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(program, "write_page", lambda: None)

    assert 0 == program.main(["--count", "30", "--only", *AIMED])

    score = results.kept("score", MutationScore)
    assert score
    assert score.share(AIMED) > 0.75, capsys.readouterr().out
