"""Lists by their time that a filter narrows: the ids that an action with this filter finds, in order, page by page."""

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.operate.inspect.id_filter import IdFilter, filter_ids
from lowkiq_lambda.operate.inspect.id_ranges import (
    IDS_AT_ONCE,
    Bound,
    ListName,
    ListPosition,
    Range,
    SearchableList,
    list_positions,
)
from lowkiq_lambda.operate.inspect.jobs import JobReader
from lowkiq_lambda.operate.inspect.paging import check_limit, position_after
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.views.jobs import Page

READ_AT_ONCE: Final = 50_000
"""About how many ids are read for one page."""
SECONDS_AT_ONCE: Final = 2.0


def filtered_ids(  # noqa: PLR0913 - a list, a filter, and a page
    jobs: JobReader,
    where: SearchableList,
    id_filter: IdFilter,
    limit: int,
    *,
    reverse: bool,
    after: str | None,
) -> Page[str]:
    """Up to `limit` ids that the filter wants, with the cursor of the next page if any ids are left to read.

    Raises BackendError, and ValueError for a bad limit or cursor.
    """
    check_limit(limit)
    listed: ListName = "due" if where == "waiting" else "morgue"
    within = Range(Bound.of(id_filter.least), Bound.of(id_filter.most), reverse, position_after(after))
    matches, ids_read = list[ListPosition](), 0
    until = time.monotonic() + SECONDS_AT_ONCE
    while len(matches) <= limit and ids_read < READ_AT_ONCE and (not ids_read or time.monotonic() < until):
        positions = list_positions(jobs.reader, listed, within, IDS_AT_ONCE)
        matches += _matching(jobs, where, id_filter, positions)
        if len(positions) < IDS_AT_ONCE:
            return _page(matches, limit, None, ids_read + len(positions))
        ids_read += len(positions)
        within = within._replace(after=positions[-1])
    return _page(matches, limit, within.after, ids_read)


def _page(positions: Sequence[ListPosition], limit: int, read_to: ListPosition | None, ids_read: int) -> Page[str]:
    last = positions[limit - 1] if len(positions) > limit else read_to
    return Page([position.id for position in positions[:limit]], None if last is None else last.cursor(), read=ids_read)


def _matching(
    jobs: JobReader,
    where: SearchableList,
    id_filter: IdFilter,
    positions: Sequence[ListPosition],
) -> list[ListPosition]:
    """Those of the positions that meet the filter's conditions besides its range."""
    ids_of = defaultdict[ShardRef, list[str]](list)
    for position in positions:
        ids_of[jobs.reader.shards[position.shard]].append(position.id)
    # An id is in one shard only.
    matches = {*filter_ids(jobs, where, id_filter, ids_of)}
    return [position for position in positions if position.id in matches]
