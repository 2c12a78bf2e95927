"""Tasks for a customer's own front end: an ASGI app with three routes, which read."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from inspect import isawaitable, signature
from typing import Any, Final, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.dashboard.api.operations import ApiError, params_from
from lowkiq_lambda.dashboard.api.responses import polled_response
from lowkiq_lambda.dashboard.api.tasks import ProgressParams, TasksParams, read_items, read_one, read_page
from lowkiq_lambda.dashboard.problems import problem_response
from lowkiq_lambda.dashboard.status_words import StatusWords, WordedItemsParams
from lowkiq_lambda.operate.presentation.tasks import TaskReader
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.tasks.views import STATUSES, Status

logger = logging.getLogger(__name__)

Authorize: TypeAlias = Callable[[Request, str | None], bool | Awaitable[bool]]
"""Given a request and the id of a task, or None for the list of all tasks: whether its sender may see that."""

NO_AUTHORIZE: Final = (
    "tasks_api needs `authorize`, a function of the request and the task's id that says whether its sender may see the "
    "task. Without it everybody could."
)
NO_ARGUMENTS: Final = "authorize is called with a request and the id of a task, or None"
_HIDDEN: Final = "There is no such task, or it is not yours."
_UNAVAILABLE: Final = "The task cannot be read now. Ask again a little later."
_FAILED: Final = "The server failed on this request. Its log has the error."
_NO_PATH: Final = "There is no such path."
_HEADERS: Final = {"cache-control": "private, no-cache", "x-content-type-options": "nosniff"}


def tasks_api(
    app: Lowkiq,
    *,
    authorize: Authorize | None = None,
    mask: Mask | None = None,
    words: Mapping[Status, str] | None = None,
    texts: Mapping[Status, str] | None = None,
) -> ASGIApp:
    """`GET /tasks`, `/tasks/{id}` and `/tasks/{id}/items` of an app, for those whom `authorize` lets in.

    `authorize` may be a coroutine function, and may raise an HTTPException of Starlette. `mask` gets a queue's name,
    the id of a job, and a label, message or params of its item, and returns the text to show. `words` renames statuses,
    as {"done": "finish"}. `texts` has a text for people for a status: the message that an item got it has that, if it
    has no text of its own. Raises ConfigError without `authorize`, and for a status that is none.
    """
    check: object = authorize
    if authorize is None or not callable(check):
        raise ConfigError(NO_AUTHORIZE, setting="authorize")
    _check_arguments(authorize)
    reader, guard = TaskReader(app.tasks, mask), _Guard(authorize)
    own = StatusWords(_checked("words", words or {}), _checked("texts", texts or {}))
    routes = [
        Route("/tasks", guard.endpoint(TasksParams, partial(read_page, reader))),
        Route("/tasks/{id}", guard.endpoint(ProgressParams, lambda params: own.progress(read_one(reader, params)))),
        Route("/tasks/{id}/items", guard.endpoint(WordedItemsParams, partial(own.items, partial(read_items, reader)))),
    ]
    served = Starlette(routes=routes, exception_handlers={HTTPException: _on_http_error})
    served.router.redirect_slashes = False
    return served


def _checked(setting: str, by_status: Mapping[Status, str]) -> Mapping[Status, str]:
    if unknown := [*(by_status.keys() - STATUSES.values())]:
        raise ConfigError(f"{unknown[0]!r} is not a status: these are {', '.join(STATUSES.values())}.", setting=setting)
    if setting == "words" and len({by_status.get(one, one) for one in STATUSES.values()}) < len(STATUSES):
        raise ConfigError("two statuses would have the same word.", setting=setting)
    return by_status


def _check_arguments(authorize: Authorize) -> None:
    """Now, and not with the first request: that the function can be called as it will be."""
    try:
        parameters = signature(authorize)
    except (TypeError, ValueError):
        # Some callables of C do not say.
        return
    try:
        parameters.bind(None, None)
    except TypeError as error:
        raise ConfigError(f"{NO_ARGUMENTS}: {error}.", setting="authorize") from None


class _Guard:
    """Answers those whom `authorize` lets in; to others nothing is there."""

    def __init__(self, authorize: Authorize) -> None:
        self._authorize = authorize

    def endpoint(self, params: Any, read_tasks: Callable[[Any], Any]) -> Callable[[Request], Awaitable[Response]]:  # noqa: ANN401 - a type of parameters
        """The endpoint of a route."""

        async def answer(request: Request) -> Response:
            response = await self._answer(request, params, read_tasks)
            response.headers.update(_HEADERS)
            return response

        return answer

    async def _answer(self, request: Request, params: Any, read_tasks: Callable[[Any], Any]) -> Response:  # noqa: ANN401 - as above
        try:
            arguments = params_from(request, params)
            if not await self._allows(request, getattr(arguments, "id", None)):
                return problem_response(HTTPStatus.NOT_FOUND, _HIDDEN, "unknown_task")
            # It blocks on Redis.
            return polled_response(request, await run_in_threadpool(read_tasks, arguments))
        except ApiError as error:
            is_unknown = error.code == "unknown_task"
            return problem_response(error.status, _HIDDEN if is_unknown else error.sentence, error.code)
        except HTTPException:
            raise
        except LowkiqError:
            logger.exception("tasks cannot be read")
            return problem_response(HTTPStatus.SERVICE_UNAVAILABLE, _UNAVAILABLE)
        except Exception:
            logger.exception("the API of tasks failed")
            return problem_response(HTTPStatus.INTERNAL_SERVER_ERROR, _FAILED)

    async def _allows(self, request: Request, task_id: str | None) -> bool:
        # A function that is not a coroutine may block, too: on a database, for example.
        allowed = await run_in_threadpool(self._authorize, request, task_id)
        if isawaitable(allowed):
            allowed = await allowed
        answer: object = allowed
        if not isinstance(answer, bool):
            raise TypeError(f"authorize must return True or False, not {answer!r}")
        return answer


def _on_http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    detail = error.detail if isinstance(error, HTTPException) else _FAILED
    response = problem_response(status, _NO_PATH if status == HTTPStatus.NOT_FOUND else detail)
    response.headers.update({**(getattr(error, "headers", None) or {}), **_HEADERS})
    return response
