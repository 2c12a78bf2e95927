"""Puts another payload in the place of one that waits or is dead."""

from collections.abc import Callable, Iterator
from hashlib import sha1
from typing import Any, Final, Literal, cast

import msgspec

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import PLACE, id_text, score_of
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import ShardSnapshot
from lowkiq_lambda.operate.acts.bulk_progress import new_action_id
from lowkiq_lambda.operate.acts.undoing import ANY_ARRIVAL
from lowkiq_lambda.operate.inspect.jobs import JobReader
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.shard.codec import dump_json
from lowkiq_lambda.views.activity import LONGEST_REASON

_KEPT: Final = 1_024
"""Bytes of an old payload that the journal keeps."""
Place = Literal["waiting", "dead"]

_REFUSALS: Final = {
    "gone": "neither waits nor lies in the morgue any more: look again.",
    "runs": "runs now, and nothing changes what runs: look again when it has ended.",
    "changed": "changed since you looked: look again.",
}


class EditRefused(ValueError):
    """The payload is not as it was seen, or it runs: nothing was changed."""


class StoredPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload of an id that an edit can replace. `digest`: the SHA-1 of its bytes, by which a change is noticed."""

    place: Place
    arrival: int
    score: float
    digest: str
    payload: object


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an edit: where the payload is, and whether it has become one with an equal payload of the id.

    `action_id`: by this id it can be undone for ten minutes; empty if it cannot be.
    """

    place: Place
    merged: bool
    action_id: str = ""


def stored_payloads(jobs: JobReader, job_id: object, load: Callable[[bytes], object]) -> list[StoredPayload]:
    """The payloads of an id that wait, then those that are dead. Raises JobError, BackendError."""
    text = id_text(job_id)
    return [
        StoredPayload(
            place=place,
            arrival=int.from_bytes(entry[PLACE - 6 : PLACE], "big"),
            score=score_of(entry),
            digest=digest_of(entry[PLACE:]),
            payload=_loaded(load, entry[PLACE:]),
        )
        for place, entry in _entries(jobs, text)
    ]


def digest_of(dumped: bytes) -> str:
    """The digest of a payload, as it is stored."""
    return sha1(dumped, usedforsecurity=False).hexdigest()


def edit(  # noqa: PLR0913 - what is edited, and how
    runner: ActionRunner,
    jobs: JobReader,
    job_id: object,
    arrival: int,
    dumped: bytes,
    *,
    digest: str | None,
    keep_cursor: bool,
    by: str,
) -> Edited:
    """Replace it. Raises JobError, EditRefused, BackendError."""
    text = id_text(job_id)
    number: object = arrival
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**48:
        raise ValueError(f"arrival must be the arrival number of a payload, not {arrival!r}.")
    there = {int.from_bytes(entry[PLACE - 6 : PLACE], "big"): entry[PLACE:] for _, entry in _entries(jobs, text)}
    old, action_id = there.get(arrival, b""), new_action_id()
    snapshot = ShardSnapshot(runner.reader.shards.home_of(text), 0.0, ANY_ARRIVAL, 0.0, 0, 0, 0)
    beginning = old[:_KEPT].decode(errors="replace")
    more = (arrival, digest or digest_of(old), dumped, "1" if keep_cursor else "", by, beginning)
    done = runner.call_once("edit", snapshot, [text], 0, b"", *more, action_id=action_id)
    words = [word.decode() for word in done.skipped]
    if not done.changed:
        reason = _REFUSALS[words[0] if words else "changed"]
        raise EditRefused(f"Payload {arrival} of {text!r} {reason}")
    return Edited(place=cast("Place", words[0]), merged="merged" in words, action_id=action_id if done.undoable else "")


def dumped_payload(worker: type[Worker[Any]], payload: object, config: Config) -> bytes:
    """The payload as it is stored. Raises JobError if it is too large or not of the type that the worker declares."""
    if worker.payload is not None:
        from lowkiq_lambda.declare.payloads import plain_payload  # noqa: PLC0415 - only where a type is declared

        payload = plain_payload(worker.payload, payload)
    try:
        dumped = (config.dump_payload or dump_json)(payload)
    except JobError:
        raise
    except Exception as error:
        raise JobError(f"dump_payload raised {type(error).__name__}: {error}", field="payload") from error
    if len(dumped) > config.max_payload_bytes:
        limit = f"more than max_payload_bytes={config.max_payload_bytes:,}"
        raise JobError(f"has {len(dumped):,} bytes, {limit}", field="payload")
    return dumped


def checked_reason(reason: object) -> str:
    """The reason, without spaces around it. Raises ValueError unless it has 1 to 200 characters."""
    text = reason.strip() if isinstance(reason, str) else ""
    if not 1 <= len(text) <= LONGEST_REASON:
        raise ValueError(f"Give a reason of 1 to {LONGEST_REASON} characters.")
    return text


def _entries(jobs: JobReader, job_id: str) -> Iterator[tuple[Place, bytes]]:
    lists: tuple[tuple[Literal["waiting", "morgue"], Place], ...] = (("waiting", "waiting"), ("morgue", "dead"))
    for where, place in lists:
        yield from ((place, entry) for entry in jobs.entries(where, job_id))


def _loaded(load: Callable[[bytes], object], dumped: bytes) -> object:
    try:
        return load(dumped)
    except Exception:  # noqa: BLE001 - a codec may raise anything
        return dumped
