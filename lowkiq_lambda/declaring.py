"""Binding a declaration to an app: what `@app.worker` does."""

import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lowkiq_lambda.errors import DeclarationError
from lowkiq_lambda.worker import FunctionWorker, Worker, check_declaration, worker_of_function

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq


def bind(app: "Lowkiq", target: object, options: Mapping[str, Any], others: Iterable[type[Worker]]) -> Any:  # noqa: ANN401 - what it was given, or a FunctionWorker for a function
    """Check the declaration and bind it to the app; what takes the declared name's place.

    Raises DeclarationError where it cannot work.
    """
    if isinstance(target, type) and not issubclass(target, Worker):
        raise DeclarationError(f"{target.__name__} must be a subclass of lowkiq_lambda.Worker.")
    if isinstance(target, type) and not options:
        _bind_class(app, target, others)
        return target
    if not callable(target):
        raise DeclarationError(f"@app.worker takes a class or a function, not {target!r}.")
    worker = worker_of_function(target, options)
    _bind_class(app, worker, others)
    return FunctionWorker(target, worker)


def worker_of(declared: "type[Worker] | FunctionWorker") -> type[Worker]:
    """The worker class behind what `@app.worker` returned."""
    return declared.worker if isinstance(declared, FunctionWorker) else declared


def _bind_class(app: "Lowkiq", worker: type[Worker], others: Iterable[type[Worker]]) -> None:
    bound_to = worker.__dict__.get("app")
    if bound_to is not None:
        which = "this app already" if bound_to is app else "another app: declare a subclass for this one"
        raise DeclarationError(f"{worker.__name__} is bound to {which}.")
    # A name that a bound parent got from its class is not handed down: the child is a queue of its own.
    owner = next((one for one in inspect.getmro(worker) if one.__dict__.get("queue_name")), None)
    names_itself = owner is None or (owner is not worker and owner.__dict__.get("app") is not None)
    if names_itself:
        worker.queue_name = worker.__name__
    try:
        check_declaration(worker)
        _check_alone(worker, others)
    except DeclarationError:
        if names_itself:
            # Else it would hand the name down to its children.
            del worker.queue_name
        raise
    worker.app = app


def _check_alone(worker: type[Worker], others: Iterable[type[Worker]]) -> None:
    for other in others:
        if other.queue_name == worker.queue_name:
            raise DeclarationError(
                f"{worker.__name__} and {other.__name__} are both declared for the queue {worker.queue_name!r}: "
                "give one of them another queue_name."
            )
