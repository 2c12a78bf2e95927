"""Which thread takes which shards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.local.splitters import ByNodeSplitter, DefaultSplitter
from lowkiq_lambda.settings.protocols import Splitter

SHARDS = ["A0", "A1", "A2", "B0", "B1", "B2", "B3", "C0", "D0", "D1"]


def dealt(splitter: Splitter, threads: int) -> list[str]:
    """The shards of each thread, as one text."""
    return [" ".join(hand) for hand in splitter.split(SHARDS, threads)]


def test_default_splitter_deals_in_turn() -> None:
    """L-57, L-58: ten shards of four workers, three threads."""
    assert dealt(DefaultSplitter(), 3) == ["A0 B0 B3 D1", "A1 B1 C0", "A2 B2 D0"]


def test_nodes_share_the_shards() -> None:
    """L-59: the shards go to the nodes in turn, then to the threads of each node."""
    assert dealt(ByNodeSplitter(number_of_nodes=2, node_number=0), 2) == ["A0 B1 D0", "A2 B3"]
    assert dealt(ByNodeSplitter(number_of_nodes=2, node_number=1), 2) == ["A1 B2 D1", "B0 C0"]


def test_more_threads_than_shards() -> None:
    """A thread too many gets an empty list, so that the number of lists is the number of threads."""
    assert DefaultSplitter().split(["A0"], 3) == [["A0"], [], []]


@given(st.lists(st.integers(), unique=True), st.integers(1, 6), st.integers(1, 6))
def test_every_shard_has_one_place(shards: list[int], nodes: int, threads: int) -> None:
    """L-59: over all nodes and threads each shard comes once, and no thread has two more than another."""
    hands = [hand for node_number in range(nodes) for hand in ByNodeSplitter(nodes, node_number).split(shards, threads)]

    assert len(hands) == nodes * threads
    assert sorted(shard for hand in hands for shard in hand) == sorted(shards)
    assert max(map(len, hands)) - min(map(len, hands)) <= 1


@pytest.mark.parametrize(("number_of_nodes", "node_number"), [(1, 1), (2, 2), (2, -1), (0, 0)])
def test_node_must_exist(number_of_nodes: int, node_number: int) -> None:
    """A node that is not counted would leave shards to nobody: it is refused."""
    with pytest.raises(ConfigError, match=f"node_number={node_number} is refused"):
        ByNodeSplitter(number_of_nodes, node_number)
