"""Where ids are while the shards of a queue are being replaced by others."""

from math import gcd
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowkiq_lambda.store.shard.layout import COUNTS_KEPT, Home, Layout, settled
from tests.kit.examples import examples

COUNTS = st.integers(1, 40)
IDS = st.text(max_size=8).map(lambda text: crc32(text.encode()))


def moving(before: int, after: int, moved: set[int]) -> Layout:
    """A layout in the middle of a move."""
    layout = settled(before).begun(after, 7)
    for group in moved:
        layout = layout.with_moved(group)
    return layout


@given(COUNTS, COUNTS, IDS)
def test_no_id_leaves_its_group(before: int, after: int, digest: int) -> None:
    """Its old shard is a source and its new one a target of one group."""
    layout = settled(before).begun(after, 7)
    group = digest % gcd(before, after)

    assert digest % before in {home.index for home in layout.sources(group)}
    assert digest % after in {home.index for home in layout.targets(group)}


@given(COUNTS, COUNTS)
def test_each_shard_is_in_one_group(before: int, after: int) -> None:
    """The groups part the old shards, and the new ones."""
    layout = settled(before).begun(after, 7)

    groups = range(layout.groups)
    assert [*range(before)] == sorted(home.index for group in groups for home in layout.sources(group))
    assert [*range(after)] == sorted(home.index for group in groups for home in layout.targets(group))


@settings(max_examples=examples(200))
@given(COUNTS, COUNTS, st.sets(st.integers(0, 39)), IDS)
def test_an_id_is_in_the_new_shards_once_its_group_has_moved(
    before: int, after: int, groups: set[int], digest: int
) -> None:
    """`homes` has at the number of its shard the one that it is in; the other home is on the other side."""
    layout = moving(before, after, {group % gcd(before, after) for group in groups} if before != after else set())

    here, there = (layout.homes[number] for number in (layout.home(digest), layout.other_home(digest)))
    has_moved = digest % layout.groups in layout.moved_groups
    count = after if has_moved else before
    assert Home(count, digest % count) == here
    assert there == here if before == after else there.shards_count == before + after - count


@given(COUNTS, COUNTS, st.sets(st.integers(0, 39)), IDS)
def test_on_the_way_back_every_id_is_where_it_was(before: int, after: int, groups: set[int], digest: int) -> None:
    """Turning back changes the direction, and no id's place."""
    layout = moving(before, after, {group % gcd(before, after) for group in groups} if before != after else set())
    back = layout.turned_back(8)

    assert layout.homes[layout.home(digest)] == back.homes[back.home(digest)]
    assert (before, 8) == (back.after, back.epoch)
    assert sorted(layout.moved_groups) == back.left


@pytest.mark.parametrize(
    ("steps", "expected"), [([3, 1, 2], ((1, 3),)), ([0, 2], ((0, 0), (2, 2))), ([5], ((5, 5),)), ([1, 1], ((1, 1),))]
)
def test_groups_are_kept_as_ranges(steps: list[int], expected: tuple[tuple[int, int], ...]) -> None:
    """However many groups there are, the layout is short."""
    assert expected == moving(24, 48, set(steps)).moved
    assert msgspec.json.decode(msgspec.json.encode(moving(24, 48, set(steps))), type=Layout).moved == expected


def test_a_move_ends_with_the_new_count() -> None:
    """Code may declare both counts then, and the last ten are remembered."""
    layout = settled(5)
    for epoch, count in enumerate((12, 3, 12, *range(20, 29)), start=1):
        layout = layout.begun(count, epoch)
        layout = layout.with_moved(0).ended() if layout.groups == 1 else _all_moved(layout).ended()

    assert not layout.is_moving
    assert (28, 28) == (layout.before, layout.after)
    assert {5, 12, 3, 28} <= {*layout.accepts}
    assert (COUNTS_KEPT, 28) == (len(layout.counts), layout.counts[-1])


def _all_moved(layout: Layout) -> Layout:
    for group in layout.left:
        layout = layout.with_moved(group)
    return layout
