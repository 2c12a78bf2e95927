"""Checks of what a push is given: what the store would not take is refused before anything is written."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import (
    ALWAYS,
    MAX_EXACT,
    ItemRef,
    digest,
    digest_of_tenant,
    encode_score,
    id_text,
    is_number,
    shard_for,
)
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.shard.chunks import (
    HAS_EXPIRY,
    HAS_HEADERS,
    HAS_MORE,
    HAS_RECEIPT,
    HAS_REF,
    REPLACE,
    UNLESS_RUNNING,
    UNLESS_WAITING,
    NewJob,
    expiry,
    header,
    item_ref,
    packed,
    receipt,
)
from lowkiq_lambda.store.shard.codec import dump_json
from lowkiq_lambda.store.shard.keys import EXPIRY, HEADERS, MARKS, RECEIPTS, TRACKING, UNIQUE
from lowkiq_lambda.store.shard.layout import Layout, QueueShards

if TYPE_CHECKING:
    from lowkiq_lambda.jobs.unique import Unique

PLAIN_FIELDS: Final = frozenset({"id", "payload", "score", "due_at", "delay"})
FIELDS: Final = PLAIN_FIELDS | {"key", "key_ttl", "headers", "expires_in", "expires_at", "unless", "on_conflict"}
OF_LOWKIQ: Final = "perform_in"
"""Lowkiq's name of `due_at`."""
ITEM: Final = "item"
"""Of a job that is pushed through a task: its `ItemRef`."""
KEY_TTL: Final = 86_400.0
"""Seconds for which a key is remembered if its job does not set them."""
LONGEST_KEY_TTL: Final = 365 * 86_400.0
SHORTEST_LIFE: Final = 1
"""Seconds until a job expires, at least."""
MAX_ID_BYTES: Final = 64 * 1024
MAX_KEY_BYTES: Final = 200
EARLIEST: Final = 1_000_000_000.0
"""September 2001: a smaller due_at is not a date that anybody plans for, but seconds from now."""
LATEST: Final = 253_402_300_800.0
"""The year 10000: a larger due_at is in milliseconds."""

NO_PAYLOAD: Final = ""
_NEEDS_ZONE: Final = "a datetime needs a time zone, say datetime.now(UTC)"


class Checked(NamedTuple):
    """Jobs as the store takes them, by shard, and the features whose keys they need."""

    by_shard: dict[int, list[NewJob]]
    features: set[str]


class Checker(msgspec.Struct, frozen=True):
    """Turns what the caller gave into what the store takes, or refuses it with JobError."""

    shards_count: int
    dump_payload: Callable[[object], bytes] | None
    max_payload_bytes: int
    now: Callable[[], float]
    by_tenant: bool = False
    layout: Layout | None = None
    """Of a queue that is being resharded."""
    needs_score: bool = False
    """Whether a job without one is refused: with merge="latest" a version must never meet a time."""
    expires_in: "float | timedelta | None" = None
    """The worker's, for jobs without an expiry of their own."""
    unique: "Unique | None" = None
    """The worker's, for jobs without `unless` and `on_conflict`."""

    def check_all(self, jobs: Sequence[Mapping[str, Any]]) -> Checked:
        """The jobs by shard, in the order given. Raises JobError, naming the position, for the first bad one."""
        by_shard: dict[int, list[NewJob]] = {}
        features = set[str]()
        for position, job in enumerate(jobs):
            try:
                new = self._check(position, job, features)
            except JobError as error:
                raise error.at(position) from error.__cause__
            except ValueError as error:
                # Python itself refuses to write out an integer of thousands of digits, wherever it stands.
                raise JobError(str(error), position=position) from error
            number = (
                shard_for(new.id, self.shards_count, by_tenant=self.by_tenant)
                if self.layout is None
                else self.layout.home((digest_of_tenant if self.by_tenant else digest)(new.id))
            )
            by_shard.setdefault(number, []).append(new)
        return Checked(by_shard, features)

    def _check(self, position: int, job: Mapping[str, Any], features: set[str]) -> NewJob:
        if type(job) is not dict and not isinstance(job, Mapping):
            raise JobError(f"a job is a mapping with an id, not {type(job).__name__}: did you mean [{{...}}]?")
        if not job.keys() <= FIELDS:
            job = _renamed(job)
            _check_fields(job)
        if "id" not in job:
            raise JobError("is required", field="id")
        job_id = id_text(job["id"], MAX_ID_BYTES)
        score = _score(job["score"]) if "score" in job else None
        if score is None and self.needs_score:
            raise JobError('is required with merge="latest": give a version of the id that grows', field="score")
        at = self._due_at(job) if "due_at" in job or "delay" in job else None
        dumped = self._payload(job.get("payload", NO_PAYLOAD))
        if job.keys() <= PLAIN_FIELDS and self.expires_in is None and self.unique is None:
            return NewJob(position, job_id, packed(score, at, dumped), at)
        flags, extras = _extras(job_id, job, features)
        expires_at = None
        if self.expires_in is not None or "expires_in" in job or "expires_at" in job:
            expires_at = _expiry_of(job, at, self.now(), self.expires_in)
            features.add(EXPIRY)
            flags, extras = flags | HAS_EXPIRY, extras + expiry(expires_at)
        has_terms = self.unique is not None or "unless" in job or "on_conflict" in job
        if has_terms and job.get("unless") != ALWAYS:
            features.add(UNIQUE)
            flags, extras = flags | HAS_MORE, extras + self._unless(job)
        return NewJob(position, job_id, packed(score, at, dumped, flags, extras), at, expires_at)

    def _unless(self, job: Mapping[str, Any]) -> bytes:
        from lowkiq_lambda.jobs.unique import REPLACE as REPLACES  # noqa: PLC0415 - imported lazily: cold start
        from lowkiq_lambda.jobs.unique import terms_of  # noqa: PLC0415 - as above

        unique = terms_of(job, self.unique)
        if unique.on_conflict == REPLACES and self.needs_score:
            raise JobError(
                'makes no sense with merge="latest", where the score decides which payload stays', field="on_conflict"
            )
        running = UNLESS_RUNNING if unique.unless == "busy" else 0
        return bytes((UNLESS_WAITING | running | (REPLACE if unique.on_conflict == REPLACES else 0),))

    def _payload(self, payload: object) -> bytes:
        dumped = dump_json(payload) if self.dump_payload is None else self._custom(payload)
        if len(dumped) > self.max_payload_bytes:
            limit = f"more than max_payload_bytes={self.max_payload_bytes:,}"
            raise JobError(f"has {len(dumped):,} bytes, {limit}", field="payload")
        return dumped

    def _custom(self, payload: object) -> bytes:
        try:
            dumped: object = self.dump_payload(payload) if self.dump_payload else b""
        except Exception as error:
            raise JobError(f"dump_payload raised {type(error).__name__}: {error}", field="payload") from error
        if not isinstance(dumped, bytes):
            raise JobError(f"dump_payload must return bytes, not {type(dumped).__name__}", field="payload")
        return dumped

    def _due_at(self, job: Mapping[str, Any]) -> float:
        if "due_at" in job and "delay" in job:
            raise JobError("give due_at (a time) or delay (from now), not both", field="delay")
        at = _absolute(job["due_at"]) if "due_at" in job else self.now() + _seconds_of(job["delay"], "delay", 0)
        if at >= LATEST:
            raise JobError("lies beyond the year 9999", field="delay")
        return at


def checker_of(
    config: Config,
    shards: QueueShards,
    now: Callable[[], float],
    worker: type[Worker[Any]],
) -> Checker:
    """The checker for jobs of the queue of these shards. `now`: a delay counts from it."""
    return Checker(
        shards.layout.before,
        config.dump_payload,
        config.max_payload_bytes,
        now,
        by_tenant=shards[0].by_tenant,
        layout=shards.layout if shards.layout.is_moving else None,
        needs_score=MARKS in shards[0].features,
        expires_in=worker.expires_in,
        unique=worker.unique,
    )


def _score(score: object) -> bytes:
    if isinstance(score, datetime):
        if score.tzinfo is None:
            raise JobError(_NEEDS_ZONE, field="score")
        score = score.timestamp()
    if not is_number(score) or not isinstance(score, int | float):
        raise JobError(f"must be a finite number or an aware datetime, not {_shown(score)}", field="score")
    if abs(score) > MAX_EXACT:
        raise JobError(f"{_shown(score)} is beyond ±2^53, where numbers are no longer exact", field="score")
    return encode_score(float(score))


def _absolute(due_at: object, field: str = "due_at", instead: str = "delay") -> float:
    """A time in Unix seconds. `instead`: the field for seconds from now. Raises JobError."""
    if isinstance(due_at, datetime):
        if due_at.tzinfo is None:
            raise JobError(_NEEDS_ZONE, field=field)
        due_at = due_at.timestamp()
        if due_at >= LATEST:
            raise JobError("lies beyond the year 9999", field=field)
    if not is_number(due_at) or not isinstance(due_at, int | float):
        raise JobError(f"must be Unix seconds or an aware datetime, not {_shown(due_at)}", field=field)
    if due_at < EARLIEST:
        hint = f"it is an absolute time in Unix seconds; for seconds from now use {instead}"
        raise JobError(f"{_shown(due_at)} lies before {time.gmtime(EARLIEST).tm_year}: {hint}", field=field)
    if due_at >= LATEST:
        raise JobError(f"{_shown(due_at)} looks like milliseconds: give seconds", field=field)
    return float(due_at)


def _seconds_of(value: object, field: str, least: float) -> float:
    """Seconds from now. Raises JobError for what is none, or less than this."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not is_number(seconds) or not isinstance(seconds, int | float) or seconds < least:
        text = f"must be seconds from now, at least {least}, or a timedelta, not {_shown(seconds)}"
        raise JobError(text, field=field)
    if seconds >= LATEST:
        raise JobError("lies beyond the year 9999", field=field)
    return float(seconds)


def _renamed(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """The job by our names, if it has a key of Lowkiq's."""
    if OF_LOWKIQ not in job:
        return job
    if "due_at" in job:
        raise JobError("is Lowkiq's name for due_at: give one of them", field=OF_LOWKIQ)
    return {"due_at" if name == OF_LOWKIQ else name: value for name, value in job.items()}


def _check_fields(job: Mapping[str, Any]) -> None:
    unknown = next((str(name) for name in job if name not in FIELDS and name != ITEM), None)
    if unknown is not None:
        from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

        fields = FIELDS | {ITEM} if ITEM in job else FIELDS
        meant = "".join(f"did you mean {name}? A" for name in get_close_matches(unknown, sorted(fields), 1)) or "a"
        raise JobError(f"no such field: {meant} job has {', '.join(sorted(fields))}", field=unknown)
    if ITEM in job and not isinstance(job[ITEM], ItemRef):
        raise JobError("is for the jobs of a task: push them with `push` of the task", field=ITEM)


def _extras(job_id: str, job: Mapping[str, Any], features: set[str]) -> tuple[int, bytes]:
    """The flags and the bytes of what few jobs have, in the order of the flags."""
    flags, extras = 0, b""
    if ITEM in job:
        features.add(TRACKING)
        flags, extras = HAS_REF, item_ref(job[ITEM])
    if "key" in job or "key_ttl" in job:
        features.add(RECEIPTS)
        flags, extras = flags | HAS_RECEIPT, extras + _receipt(job_id, job)
    if "headers" in job and job["headers"] != {}:
        from lowkiq_lambda.jobs.headers import checked  # noqa: PLC0415 - imported lazily: cold start

        features.add(HEADERS)
        flags, extras = flags | HAS_HEADERS, extras + header(checked(job["headers"]))
    return flags, extras


def _expiry_of(job: Mapping[str, Any], due_at: float | None, now: float, default: "float | timedelta | None") -> float:
    """The time (Unix seconds) after which the payload of the job is not handed over.

    Seconds count from when the job is due. `default`: of a job that says nothing. Raises JobError.
    """
    if "expires_in" in job and "expires_at" in job:
        raise JobError(
            "give expires_at (a time) or expires_in (from when the job is due), not both", field="expires_in"
        )
    if "expires_at" in job:
        expires_at = _absolute(job["expires_at"], "expires_at", "expires_in")
        if due_at is not None and expires_at < due_at:
            raise JobError("would expire before it is due", field="expires_at")
        return expires_at
    seconds = _seconds_of(job.get("expires_in", default), "expires_in", SHORTEST_LIFE)
    expires_at = (now if due_at is None or due_at < now else due_at) + seconds
    if expires_at >= LATEST:
        raise JobError("lies beyond the year 9999", field="expires_in")
    return expires_at


def _receipt(job_id: str, job: Mapping[str, Any]) -> bytes:
    if "key" not in job:
        raise JobError("is for how long a key is remembered: give a key too", field="key_ttl")
    key, ttl = job["key"], job.get("key_ttl", KEY_TTL)
    if not isinstance(key, str):
        raise JobError(f"must be a str, not {type(key).__name__}", field="key")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise JobError("holds a lone surrogate, which cannot be stored", field="key") from None
    if not 1 <= size <= MAX_KEY_BYTES:
        raise JobError(f"has {size:,} bytes: give 1 to {MAX_KEY_BYTES}", field="key")
    if isinstance(ttl, timedelta):
        ttl = ttl.total_seconds()
    if not is_number(ttl) or not isinstance(ttl, int | float) or not 0 < ttl <= LONGEST_KEY_TTL:
        value = f"not {_shown(job['key_ttl'])}"
        raise JobError(f"must be seconds above 0, at most 365 days, or a timedelta, {value}", field="key_ttl")
    return receipt(job_id, key, float(ttl))


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"
