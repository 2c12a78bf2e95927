"""Pages: their size, and the cursor that the next page begins after."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lowkiq_lambda.operate.inspect.id_ranges import ListPosition

LARGEST_PAGE: Final = 10_000


def check_limit(limit: int) -> None:
    """Raises ValueError if a page cannot have so many entries."""
    value: object = limit
    if not isinstance(value, int) or not 1 <= limit <= LARGEST_PAGE:
        raise ValueError(f"limit must be from 1 to {LARGEST_PAGE:,}, not {limit!r}.")


def probe_limit(limit: int) -> int:
    """One more than the limit, to know whether there is a next page. Raises ValueError."""
    check_limit(limit)
    return limit + 1


def position_after(after: str | None) -> "ListPosition | None":
    """The position that a page ended with. Raises ValueError if `after` is not the `next` of a page."""
    if after is None:
        return None
    from lowkiq_lambda.operate.inspect.id_ranges import ListPosition  # noqa: PLC0415 - a help asks for the limit alone

    try:
        return ListPosition.of(after)
    except (AttributeError, ValueError) as error:
        raise ValueError(f"after={after!r} is not the `next` of a page.") from error
