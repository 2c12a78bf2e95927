"""Pages of a task's items."""

from lowkiq_lambda.tasks.items import TaskItems
from lowkiq_lambda.tasks.views import STATUSES, Item, ItemPage, Status

LARGEST_PAGE = 1_000


def check_limit(limit: int) -> None:
    """Raises ValueError if a page cannot have so many entries."""
    given: object = limit
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= limit <= LARGEST_PAGE:
        raise ValueError(f"limit must be from 1 to {LARGEST_PAGE:,}, not {limit!r}.")


def item_page(items: TaskItems, status: Status | None, after: str | None, limit: int) -> ItemPage:
    """Items of one status, or of all in the order of `STATUSES`. Raises ValueError."""
    check_limit(limit)
    if status is not None and status not in STATUSES.values():
        raise ValueError(f"status must be one of {', '.join(sorted(STATUSES.values()))}, not {status!r}.")
    wanted = [*STATUSES.values()] if status is None else [status]
    first, number = (wanted[0], 0) if after is None else _position(after, wanted)
    counts = items.counts().by_status
    found: list[Item] = []
    for one in wanted[wanted.index(first) :]:
        if counts[one] and len(found) <= limit:
            found += items.page(one, number if one == first else 0, limit + 1 - len(found))
    page = found[:limit]
    return ItemPage(page, f"{page[-1].status}-{page[-1].number}" if len(found) > limit else None)


def _position(after: str, wanted: list[Status]) -> tuple[Status, int]:
    """Status and number that the page before ended with."""
    given: object = after
    name, _, number = after.partition("-") if isinstance(given, str) else ("", "", "")
    status = next((one for one in wanted if one == name), None)
    if status is None or not (number.isascii() and number.isdecimal()) or len(number) > len("4294967295"):
        raise ValueError(f"after={after!r} is not the `next` of a page of these items.")
    return status, min(int(number), 2**32 - 1)
