"""Items of tasks, whatever happens to their shard: each has its payload until it ends as its job does (A-40)."""

from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import Phase

from lowkiq_lambda.store.shard import scripts
from lowkiq_lambda.store.shard.scripts import Linker, Part
from tests.kit.examples import examples, mostly_nightly
from tests.kit.servers import Server
from tests.properties.operated import run
from tests.properties.tracked import TrackedLaneMachine, TrackedMachine


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_a23_items_are_where_their_payloads_are(server: Server) -> None:
    """A-23, A-40, P2: pushed, merged, claimed, retried, dead, put back, deleted, trimmed, left by the dead."""
    run(TrackedMachine, server, examples(300))
    assert {"d", "x"} <= TrackedMachine.ended.keys()


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_b2_items_of_tenants_are_where_their_payloads_are(server: Server) -> None:
    """B-2: also where ids take turns."""
    run(TrackedLaneMachine, server, 10, derandomize=True)


MUTANTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "no join of payloads in a record": ("put", "    if gone then note_joined(id, kept, gone) end\n", ""),
    "not marked on the way back": ("put_back", "if has_tracking then mark_items", "if false then mark_items"),
    "not marked by a claim": ("claim", "has_tracking and mark_flown(claimed_jobs)", "false"),
    "marked payloads stay": ("take_out", "retry_count, left))", "retry_count, entries))"),
    "marked items stay": ("outcomes", "if has_tracking then finish_items(arrivals_of(done), 'd') end", ""),
    "refs stay": ("end_items", "call('HDEL', refs, unpack(some))", "do end"),
    "trimmed refs stay": ("morgue", "if has_tracking then drop_refs", "if false then drop_refs"),
}
"""Faults, each in an include: what stands there, and what is put in its place."""


@pytest.mark.parametrize("mutant", mostly_nightly(MUTANTS, "refs stay"))
def test_a_script_that_forgets_items_is_found(server: Server, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    """The machine sees each of these faults."""
    include, there, instead = MUTANTS[mutant]
    linker = Linker(scripts._linker._root)
    text = linker.include(include).text
    assert there in text
    linker._parts[include] = Part.of(text.replace(there, instead))
    monkeypatch.setattr(scripts, "_linker", linker)
    scripts.script.cache_clear()
    try:
        with pytest.raises(AssertionError):
            run(TrackedMachine, server, 160, phases=[Phase.generate], derandomize=True)
    finally:
        scripts.script.cache_clear()
