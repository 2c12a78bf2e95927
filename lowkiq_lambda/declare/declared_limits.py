"""Checks what a worker declares about limits: how much runs at once, how much in a time, and what waits for what."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.declare.worker import HOME, queues_before
from lowkiq_lambda.jobs.job import is_number
from lowkiq_lambda.jobs.rate import Rate

if TYPE_CHECKING:
    from lowkiq_lambda.declare.worker import Worker

MOST_RUNNING: Final = 100_000
LEAST_WEIGHT: Final = 0.001
MOST_WEIGHT: Final = 1_000
TENANTS: Final = ("spread", HOME)


def check_limits(worker: "type[Worker[Any]]") -> None:
    """Refuses, with DeclarationError, limits that cannot work."""
    name = worker.__name__
    if worker.max_running is not None:
        check_max_running(f"{name}.max_running", worker.max_running)
    if worker.rate is not None:
        check_rate(f"{name}.rate", worker.rate)
    _check_names(f"{name}.waits_for", worker.waits_for)
    if worker.block_except is not None:
        _check_names(f"{name}.block_except", worker.block_except)
    weight: object = worker.weight
    if not is_number(weight) or not LEAST_WEIGHT <= worker.weight <= MOST_WEIGHT:
        raise DeclarationError(
            f"{name}.weight must be a number from {LEAST_WEIGHT} to {MOST_WEIGHT:,}, not {weight!r}."
        )
    if worker.tenants is not None and worker.tenants not in TENANTS:
        raise DeclarationError(f'{name}.tenants must be "spread", "home" or None, not {worker.tenants!r}.')
    if worker.tenants == HOME and worker.concurrency != 1:
        raise DeclarationError(
            f'{name}.tenants = "home" promises one handler of a tenant at a time, so it needs concurrency = 1.'
        )
    if worker.tenant_rate is not None:
        check_rate(f"{name}.tenant_rate", worker.tenant_rate)
        if worker.tenants != HOME:
            raise DeclarationError(
                f'{name}.tenant_rate needs tenants = "home": else each shard would allow a tenant that much.'
            )


def check_max_running(where: str, value: object) -> None:
    """Raises DeclarationError if the value is not a number of visits."""
    if value == 0 and not isinstance(value, bool):
        raise DeclarationError(f"{where} must not be 0, which would let nothing run: pause the queue for that.")
    if not is_number(value) or not isinstance(value, int) or not 0 < value <= MOST_RUNNING:
        raise DeclarationError(f"{where} must be a whole number from 1 to {MOST_RUNNING:,}, not {value!r}.")


def check_rate(where: str, value: object) -> None:
    """Raises DeclarationError if the value is not a rate."""
    if not isinstance(value, Rate):
        raise DeclarationError(f"{where} must be a Rate, as in Rate(100, per=60), not {value!r}.")


def check_waits(worker: "type[Worker[Any]]", others: "Iterable[type[Worker[Any]]]") -> None:
    """Raises DeclarationError if a worker would wait for itself, directly or by way of other workers."""
    workers = [*others, worker]
    waits = {other.queue_name: queues_before(other, workers) for other in workers}
    if cycle := _cycle_through(worker.queue_name, waits):
        path = " waits for ".join(repr(name) for name in cycle)
        field = "waits_for" if all(other.block_except is None for other in workers) else "waits_for and block_except"
        raise DeclarationError(f"{worker.__name__}.{field} would never let it run: {path}.")


def check_waited_for(workers: "Iterable[type[Worker[Any]]]") -> None:
    """Refuses, with DeclarationError, a wait for a queue that the app does not declare."""
    declared = {worker.queue_name: worker for worker in workers}
    for worker in declared.values():
        for field, names in (("waits_for", worker.waits_for), ("block_except", worker.block_except or ())):
            if unknown := [name for name in names if name not in declared]:
                raise DeclarationError(
                    f"{worker.__name__}.{field} names {unknown[0]!r}, and the app declares no such queue: it has "
                    f"{', '.join(declared)}."
                )


def _check_names(where: str, names: object) -> None:
    if isinstance(names, str):
        raise DeclarationError(f"{where} must be a tuple of queue names: write ({names!r},).")
    if not isinstance(names, tuple) or not all(isinstance(one, str) and one for one in names):
        raise DeclarationError(f"{where} must be a tuple of queue names, not {names!r}.")


def _cycle_through(queue_name: str, waits: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The queues from this one back to itself; empty where none leads there."""
    paths, visited = [[queue_name]], {queue_name}
    while paths:
        path = paths.pop()
        for name in waits.get(path[-1], ()):
            if name == queue_name:
                return [*path, name]
            if name not in visited:
                visited.add(name)
                paths.append([*path, name])
    return []
