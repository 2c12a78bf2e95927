"""The pictures by the names of their files."""

from collections.abc import Callable
from typing import Final

from docs_build.pictures import jobs, parts
from docs_build.pictures.drawing import Picture

PICTURES: Final[dict[str, Callable[[], Picture]]] = {
    "two-updates": jobs.two_updates,
    "retry": jobs.retry_in_one_lane,
    "life-of-an-id": jobs.life_of_an_id,
    "merging": jobs.merging,
    "cursor": jobs.cursor,
    "on-aws": parts.on_aws,
    "daemon": parts.in_a_daemon,
    "lease": parts.lease,
    "moving-shards": parts.moving_shards,
}
