"""Pages of APIs, queries and listings, and the error for a cursor that a helper cannot go on from."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from lowkiq_lambda.base.errors import CursorError
from lowkiq_lambda.iterate.pairs import Pairs

T = TypeVar("T")

Cursor: TypeAlias = Any
"""Any JSON but null, which begins, and the types of `cursor_values`."""
Level: TypeAlias = Callable[..., Iterable[tuple[T, Cursor]]]
"""A function that takes `after` as its last argument and gives pairs."""

_SHOWN: Final = 200
"""Characters of a cursor in an error."""
C = TypeVar("C")


def strange(helper: str, cursor: object, why: str) -> CursorError:
    """The error for a cursor that the helper did not make, or no longer understands."""
    text = repr(cursor)
    return CursorError(f"The cursor {text[:_SHOWN]}{'…' * (len(text) > _SHOWN)} is not one of {helper}: {why}.")


def is_count(value: object) -> bool:
    """Whether it is a whole number from 0; True and False are none."""
    return type(value) is int and value >= 0


def pages(fetch: Callable[[C | None], Iterable[tuple[T, C]]], after: C | None = None) -> Pairs[T, C]:
    """The items of all pages: `fetch(cursor)` gives the (item, cursor) pairs after the cursor, and none at the end.

    `fetch` is asked with None first, then with the cursor of the last item of the page before. Raises ValueError where
    an item has the cursor None, which would mean the beginning, or where a page ends at the cursor that it began at, as
    the same page would come for ever.

    Examples:
        >>> list(pages(lambda n: [("item", n + 1)] if n < 3 else [], after=1))
        [('item', 2), ('item', 3)]
    """
    return Pairs(_pages(fetch, after))


def _pages(fetch: Callable[[C | None], Iterable[tuple[T, C]]], after: C | None) -> Iterator[tuple[T, C]]:
    while True:
        cursor = None
        for item, cursor in fetch(after):
            if cursor is None:
                raise ValueError("fetch gave an item the cursor None, which means the beginning: give it another one")
            yield item, cursor
        if cursor is None:
            return
        if cursor == after:
            raise ValueError(f"fetch gave a page that ends at the cursor {cursor!r} that it began at")
        after = cursor


class ListsObjects(Protocol):
    """A boto3 client of S3, as far as it is used."""

    def list_objects_v2(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - boto3 has no types of its own
        """One page of a bucket."""
        ...


def s3_objects(
    client: ListsObjects, bucket: str, prefix: str = "", after: str | None = None, *, size: int = 1_000
) -> Pairs[dict[str, Any], str]:
    """The objects of a bucket whose keys begin with `prefix`, in the order of their keys; the cursor is the key.

    Items are those of ListObjectsV2 (`Key`, `Size`, `LastModified`, `ETag` …), `size` of them in each call (1,000 at
    most). Objects that are written while the job runs are met if their keys come after the cursor. A directory bucket
    lists its keys in no order, so it cannot be read so. Raises CursorError if the cursor is not a key with the
    prefix, and what boto3 raises.
    """
    key: object = after
    if key is not None and not (isinstance(key, str) and key.startswith(prefix)):
        raise strange("s3_objects", after, f"it must be a key that begins with {prefix!r}")

    def fetch(cursor: str | None) -> list[tuple[dict[str, Any], str]]:
        place = {"StartAfter": cursor} if cursor else {}
        while True:
            answer = client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=size, **place)
            keyed = [(item, item["Key"]) for item in answer.get("Contents", ())]
            # S3 may answer with a page that is empty and not the last, where many objects were deleted.
            if keyed or not answer.get("IsTruncated"):
                return keyed
            place = {"ContinuationToken": answer["NextContinuationToken"]}

    return pages(fetch, after)
