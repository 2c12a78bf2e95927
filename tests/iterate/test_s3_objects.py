"""Objects of a bucket, on the local cloud."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from lowkiq_lambda import CursorError
from lowkiq_lambda.iterate import csv_rows, nested, s3_objects
from tests.iterate.resuming import in_one_go, interrupted
from tests.kit.servers import LocalCloud

KEYS = ["in/a b.csv", "in/a&b.csv", "in/é.csv", "in/語.csv", *(f"in/{number}.csv" for number in range(7))]


@pytest.fixture
def bucket(cloud: LocalCloud) -> Iterator[str]:
    """A bucket with objects of three rows each, and others that have another prefix."""
    client, name = cloud.client("s3"), f"bucket-{uuid4().hex}"
    client.create_bucket(Bucket=name)
    keys = [*KEYS, "a", "in", "z"]
    for key in keys:
        client.put_object(Bucket=name, Key=key, Body=b"n\n1\n2\n3\n")
    yield name
    for key in keys:
        client.delete_object(Bucket=name, Key=key)
    client.delete_bucket(Bucket=name)


@pytest.mark.parametrize("every", [1, 2, 5])
def test_an_interrupted_listing_has_each_object_once(cloud: LocalCloud, bucket: str, every: int) -> None:
    """In the order of their keys, also of those that are no plain names, however the pages lie."""

    def loop(after: Any) -> Any:
        return s3_objects(cloud.client("s3"), bucket, "in/", after, size=3)

    expected = sorted(KEYS, key=str.encode)
    assert expected == [item["Key"] for item in in_one_go(loop)]
    assert expected == [item["Key"] for item in interrupted(loop, every)]
    assert {8} == {item["Size"] for item in in_one_go(loop)}


def test_files_of_a_bucket_row_by_row(cloud: LocalCloud, bucket: str) -> None:
    """J-35: objects and their rows are two levels of one loop."""
    client = cloud.client("s3")

    def rows(item: dict[str, Any], after: Any) -> Any:
        client.download_file(bucket, item["Key"], str(cloud.folder / "object"))
        with (cloud.folder / "object").open("rb") as file:
            yield from csv_rows(file, after)

    def loop(after: Any) -> Any:
        return nested(lambda key: s3_objects(client, bucket, "in/", key, size=2), rows, after=after)

    expected = [(key, {"n": n}) for key in sorted(KEYS, key=str.encode) for n in "123"]
    assert expected == [(item["Key"], row) for item, row in in_one_go(loop)]
    assert expected == [(item["Key"], row) for item, row in interrupted(loop, 2)]


def test_an_empty_prefix_is_the_whole_bucket(cloud: LocalCloud, bucket: str) -> None:
    """And nothing there is a loop that is over."""
    assert len(KEYS) + 3 == len(list(s3_objects(cloud.client("s3"), bucket)))
    assert [] == list(s3_objects(cloud.client("s3"), bucket, "none/"))


@pytest.mark.parametrize("cursor", [1, ["in/0.csv"], "out/0.csv"])
def test_a_cursor_that_is_not_such_a_key_is_refused(cloud: LocalCloud, cursor: Any) -> None:
    """The job asked for another prefix when it began."""
    with pytest.raises(CursorError, match="it must be a key that begins with 'in/'"):
        next(s3_objects(cloud.client("s3"), "bucket", "in/", cursor))
