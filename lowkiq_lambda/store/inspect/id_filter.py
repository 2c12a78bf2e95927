"""An operator's filter for lists that are too long to be shown."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from lowkiq_lambda.store.inspect.id_ranges import Bound, IdsReply, SearchableList
from lowkiq_lambda.store.shard.reader import ShardReader


class IdFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a list; all of it by default.

    `least` and `most`: of perform_in, or of updated_at in the morgue; `least_count` and `most_count`: of retry_count.
    All four as in Redis; "" for the latter two sets no bound. `least_id` and `most_id`: "[" or "(" and an id, or "".
    `prefix`: the beginning of the id; `error`: a part of its last error, in any case.
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
        """Raises ValueError for an invalid bound."""
        for bound in (self.least, self.most, self.least_count or "-", self.most_count or "+"):
            Bound.of(bound)
        if any(bound[:1] not in {"", "[", "("} for bound in (self.least_id, self.most_id)):
            raise ValueError('A bound of ids begins with "[" or "(".')

    @property
    def conditions(self) -> tuple[str, ...]:
        """All but the range: conditions that filter_ids.lua checks id by id; "" is none."""
        counts = [str(Bound.of(bound)) if bound else "" for bound in (self.least_count, self.most_count)]
        return *counts, self.least_id, self.most_id, self.prefix, _lowered(self.error)


ALL: Final = IdFilter()
"""Everything."""


Wanted: TypeAlias = IdFilter | Mapping[str, str]
"""A filter, or its fields by name: `{"error": "timeout"}`; `{}` is everything."""


def filter_by(wanted: Wanted) -> IdFilter:
    """The filter. Raises ValueError for a field that it has not, or a bound that is none."""
    try:
        return wanted if isinstance(wanted, IdFilter) else msgspec.convert(dict(wanted), IdFilter)
    except msgspec.ValidationError as error:
        names = ", ".join(field.name for field in msgspec.structs.fields(IdFilter))
        raise ValueError(f"The filter cannot work: {error}. It has {names}.") from error


def filter_ids(reader: ShardReader, where: SearchableList, wanted: IdFilter, ids: Sequence[str]) -> list[str]:
    """The ids that meet the filter's conditions; all ids are of the reader's only shard. Raises BackendError."""
    if not any(wanted.conditions):
        return [*ids]
    (shard,) = reader.shards
    args = {shard: [where, *wanted.conditions, *ids]}
    (matches,) = reader.read("filter_ids", args, lambda _shard, reply: IdsReply.of(reply).ids)
    return [job_id.decode() for job_id in matches]


def _lowered(text: str) -> str:
    """In lower case as the server does it: ASCII letters only."""
    return text.encode().lower().decode()
