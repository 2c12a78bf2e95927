"""What is read page by page: APIs, queries, listings, and the objects of a bucket."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from lowkiq_lambda.iterate.cursors import strange

T = TypeVar("T")
C = TypeVar("C")


def pages(fetch: Callable[[C | None], Iterable[tuple[T, C]]], after: C | None = None) -> Iterator[tuple[T, C]]:
    """The items of all pages: `fetch(cursor)` gives the (item, cursor) pairs behind the cursor, and none at the end.

    `fetch` is asked with None first, then with the cursor of the last item of the page before. Raises ValueError where
    an item has the cursor None, which would mean the beginning, or where a page ends at the cursor that it began at, as
    the same page would come for ever.

    Examples:
        >>> list(pages(lambda n: [("item", n + 1)] if n < 3 else [], after=1))
        [('item', 2), ('item', 3)]
    """
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
) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of a bucket whose keys begin with `prefix`, in the order of their keys; the cursor is the key.

    Items are those of ListObjectsV2 (`Key`, `Size`, `LastModified`, `ETag` …), `size` of them in each call (1,000 at
    most). Objects that are written while the job runs are met if their keys lie behind the cursor. A directory bucket
    lists its keys in no order, so it cannot be read so. Raises CursorError where the cursor is not a key with the
    prefix, and what boto3 raises.
    """
    given: object = after
    if given is not None and not (isinstance(given, str) and given.startswith(prefix)):
        raise strange("s3_objects", after, f"it must be a key that begins with {prefix!r}")

    def fetch(cursor: str | None) -> list[tuple[dict[str, Any], str]]:
        place = {"StartAfter": cursor} if cursor else {}
        while True:
            answer = client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=size, **place)
            found = [(item, item["Key"]) for item in answer.get("Contents", ())]
            # S3 may answer with a page that is empty and not the last, where many objects were deleted.
            if found or not answer.get("IsTruncated"):
                return found
            place = {"ContinuationToken": answer["NextContinuationToken"]}

    return pages(fetch, after)
