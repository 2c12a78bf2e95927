"""An operator's filter for lists that are too long to be shown."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self, TypeAlias

import msgspec

from lowkiq_lambda.operate.inspect.id_ranges import Bound
from lowkiq_lambda.operate.inspect.jobs import JobList, JobReader
from lowkiq_lambda.operate.inspect.payload_query import payload_query
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import ReplyShape

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)

_ENDS: Final = {"least": "-inf", "most": "+inf", "least_count": "-inf", "most_count": "+inf"}
"""Of the bounds: what is as good as none."""


class IdFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a list; all of it by default.

    `least` and `most`: of due_at, or of updated_at in the morgue; `least_count` and `most_count`: of retry_count.
    All four as in Redis; "" for the latter two sets no bound. `least_id` and `most_id`: "[" or "(" and an id, or "".
    `prefix`: the beginning of the id; `error`: a part of its last error, in any case; `fingerprint`: that of its last
    error, exactly, 16 hex digits; `payload`: conditions that one of its payloads meets (`payload_query`).
    """

    least: str = "-inf"
    most: str = "+inf"
    least_count: str = ""
    most_count: str = ""
    least_id: str = ""
    most_id: str = ""
    prefix: str = ""
    error: str = ""
    fingerprint: str = ""
    payload: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for an invalid bound."""
        for bound in (self.least, self.most, self.least_count or "-", self.most_count or "+"):
            Bound.of(bound)
        if any(bound[:1] not in {"", "[", "("} for bound in (self.least_id, self.most_id)):
            raise ValueError('A bound of ids begins with "[" or "(".')
        if self.fingerprint and not _FINGERPRINT.fullmatch(self.fingerprint):
            raise ValueError(f"{self.fingerprint!r} is not the fingerprint of an error: it has 16 hex digits.")
        if self.payload:
            payload_query(self.payload)

    def from_time(self, least: float) -> Self:
        """The same, but for nothing before that time."""
        return msgspec.structs.replace(self, least=str(max(Bound.of(self.least), Bound(least))))

    @property
    def narrows(self) -> bool:
        """Whether it has any condition besides its range."""
        return bool(self.fingerprint or self.payload) or any(self.conditions)

    @property
    def is_everything(self) -> bool:
        """Whether every job meets it, whatever bounds without an end were written."""
        bounds = {name: Bound.of(getattr(self, name) or end).value for name, end in _ENDS.items()}
        ends = {name: getattr(ALL, name) for name, end in _ENDS.items() if bounds[name] == float(end)}
        ids = {name: "" for name in ("least_id", "most_id") if not getattr(self, name)[1:]}
        return msgspec.structs.replace(self, **ends, **ids) == ALL

    @property
    def conditions(self) -> tuple[str, ...]:
        """What filter_ids.lua checks id by id: all but the range, the fingerprint and the payload; "" is none."""
        counts = [str(Bound.of(bound)) if bound else "" for bound in (self.least_count, self.most_count)]
        return *counts, self.least_id, self.most_id, self.prefix, _lowered(self.error)


ALL: Final = IdFilter()
"""Everything."""


Wanted: TypeAlias = IdFilter | Mapping[str, str]
"""A filter, or its fields by name: `{"error": "timeout"}`; `{}` is everything."""


def filter_by(criteria: Wanted) -> IdFilter:
    """The filter. Raises ValueError for a field that it has not, or a bound that is none."""
    try:
        return criteria if isinstance(criteria, IdFilter) else msgspec.convert(dict(criteria), IdFilter)
    except msgspec.ValidationError as error:
        names = ", ".join(field.name for field in msgspec.structs.fields(IdFilter))
        sentence = str(error).removesuffix(".")
        raise ValueError(f"The filter cannot work: {sentence}. It has {names}.") from error


class FilteredIdsReply(ReplyShape, frozen=True):
    """The reply of filter_ids.lua: ids, and their errors if the call asks for them."""

    scripts = ("filter_ids",)
    ids: list[bytes]
    errors: list[bytes]


def filter_ids(
    jobs: JobReader, where: JobList, id_filter: IdFilter, ids: Mapping[ShardRef, Sequence[str]]
) -> Iterator[str]:
    """Those of the ids of each shard that meet the filter's conditions, but for its range. Raises BackendError."""
    matches = _by_script(jobs, where, id_filter, ids)
    return iter(jobs.holding(where, matches, payload_query(id_filter.payload))) if id_filter.payload else matches


def _by_script(
    jobs: JobReader, where: JobList, id_filter: IdFilter, ids: Mapping[ShardRef, Sequence[str]]
) -> Iterator[str]:
    """Those that meet all conditions besides that on the payloads."""
    reader, errors = jobs.reader, jobs.errors
    if not (id_filter.fingerprint or any(id_filter.conditions)):
        for of_shard in ids.values():
            yield from of_shard
        return
    part = errors.part if id_filter.fingerprint else ""
    listed = "morgue" if where == "morgue" else "waiting"
    args = {shard: [listed, *id_filter.conditions, part, *of_shard] for shard, of_shard in ids.items()}
    for answer in reader.read("filter_ids", args, lambda _shard, reply: FilteredIdsReply.of(reply)):
        matches = answer.ids
        if id_filter.fingerprint:
            pairs = zip(answer.ids, answer.errors, strict=True)
            matches = [job_id for job_id, error in pairs if errors.fingerprint(error).digits == id_filter.fingerprint]
        for job_id in matches:
            yield job_id.decode()


def _lowered(text: str) -> str:
    """In lower case as the server does it: ASCII letters only."""
    return text.encode().lower().decode()
