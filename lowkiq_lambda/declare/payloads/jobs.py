"""Payloads of a declared type on their way: checked as they are pushed, and made anew as they are performed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.declare.payloads.kinds import PayloadType, payload_type
from lowkiq_lambda.jobs.job import PLACE


class WrongPayload(ValueError):
    """Bytes that wait in Redis are not of the type that their worker declares."""


def plain_payload(kind: Any, payload: object) -> object:  # noqa: ANN401 - any type
    """The JSON values that stand for the payload. Raises JobError if it is not of the type."""
    return _plain(payload_type(kind), payload)


def plain_jobs(kind: Any, jobs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:  # noqa: ANN401 - any type
    """The jobs with payloads as JSON values. Raises JobError, naming the position, if one is not of the type.

    Other checks report the other faults of a job.
    """
    kind_of_payload = payload_type(kind)
    return [_plain_job(kind_of_payload, position, job) for position, job in enumerate(jobs)]


def loader(kind: Any, load: Callable[[bytes], object] | None) -> Callable[[bytes], object]:  # noqa: ANN401 - any type
    """Reads a payload of the type, by way of the app's own `load` if it has one; what that raises passes through.

    Raises WrongPayload.
    """
    kind_of_payload = payload_type(kind)
    return (
        _guarded(kind_of_payload.name, kind_of_payload.decode)
        if load is None
        else _after(load, _guarded(kind_of_payload.name, kind_of_payload.load))
    )


def wrong_payload(entries: Sequence[bytes], load: Callable[[bytes], object]) -> str | None:
    """Which of the payloads of an id is the first that is not of the type, and why.

    None if another error comes first.
    """
    for number, entry in enumerate(entries, start=1):
        try:
            load(entry[PLACE:])
        except WrongPayload as error:
            return f"payload {number} of {len(entries)} {error}"
        except Exception:  # noqa: BLE001 - reported by other checks
            return None
    return None


def _plain_job(kind: PayloadType, position: int, job: Mapping[str, Any]) -> Mapping[str, Any]:
    fields: object = job
    if not isinstance(fields, Mapping):
        return job
    if "payload" not in job:
        raise JobError(f"is required, and of the type {kind.name}", position=position, field="payload")
    return {**job, "payload": _plain(kind, job["payload"], position)}


def _plain(kind: PayloadType, payload: object, position: int | None = None) -> object:
    try:
        return kind.dump(payload)
    except Exception as error:
        raise JobError(f"is not of the type {kind.name}: {error}", position=position, field="payload") from error


def _guarded(name: str, parse: Callable[[Any], object]) -> Callable[[Any], object]:
    def guarded(stored: object) -> object:
        try:
            return parse(stored)
        except Exception as error:
            raise WrongPayload(f"is not of the type {name}: {error}") from error

    return guarded


def _after(load: Callable[[bytes], object], parse: Callable[[object], object]) -> Callable[[bytes], object]:
    return lambda dumped: parse(load(dumped))
