"""What an operator searches for, in lists that are too long to be shown."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.store.inspect.id_ranges import Bound
from lowkiq_lambda.store.shard.reader import ShardReader

Where: TypeAlias = Literal["waiting", "morgue"]


class IdFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What of a list is meant; all of it by default.

    `least` and `most`: of perform_in, or of updated_at in the morgue; `least_count` and `most_count`: of retry_count.
    All four as in Redis, "" for the latter two is no bound. `least_id` and `most_id`: "[" or "(" and an id, or "".
    `prefix`: how the id begins; `error`: what its last error contains, in whatever case.
    """

    least: str = "-inf"
    most: str = "+inf"
    least_count: str = ""
    most_count: str = ""
    least_id: str = ""
    most_id: str = ""
    prefix: str = ""
    error: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for what is no bound."""
        for bound in (self.least, self.most, self.least_count or "-", self.most_count or "+"):
            Bound.of(bound)
        if any(bound[:1] not in {"", "[", "("} for bound in (self.least_id, self.most_id)):
            raise ValueError('A bound of ids begins with "[" or "(".')

    @property
    def sifts(self) -> tuple[str, ...]:
        """What the ids of a list have to be asked for, one by one."""
        counts = [str(Bound.of(bound)) if bound else "" for bound in (self.least_count, self.most_count)]
        return *counts, self.least_id, self.most_id, self.prefix, _small(self.error)


ALL: Final = IdFilter()
"""Everything."""


def filter_ids(reader: ShardReader, where: Where, wanted: IdFilter, ids: Sequence[str]) -> list[str]:
    """Those of the ids, all of the source's one shard, that the filter wants apart from its range.

    Raises BackendError.
    """
    if not any(wanted.sifts):
        return [*ids]
    (shard,) = reader.shards
    asked = {shard: [where, *wanted.sifts, *ids]}
    (found,) = reader.read("filter_ids", asked, lambda _shard, reply: [job_id.decode() for job_id in reply])
    return found


def _small(text: str) -> str:
    """As the server makes letters small: those of ASCII only."""
    return text.encode().lower().decode()
