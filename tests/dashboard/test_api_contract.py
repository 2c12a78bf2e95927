"""The API keeps to its description: whatever is sent, by it or against it, the answer is one that it names."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis

# Imported by itself in the depth of a test, it is too deep for the parser of Python 3.11.
import schemathesis.generation.jsonschema.builder
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import Case, GenerationMode
from starlette.types import ASGIApp

from lowkiq_lambda import KeepRuns, Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.dashboard.api.operations import PREFIX
from lowkiq_lambda.dashboard.api.routes import OPERATIONS
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.testing import ManualClock
from tests.kit.examples import examples
from tests.kit.handlers import FailingHandler

SECRET = "s" * 20
EXAMPLES = examples(16)

pytestmark = pytest.mark.timeout(300)


class Bearer:
    """Adds the operator's token to each request, and lets the checks leave it out."""

    def get(self, _case: Case[Any], _context: object) -> str:
        """The token."""
        return SECRET

    def set(self, case: Case[Any], data: str, _context: object) -> None:
        """With the token."""
        case.headers["Authorization"] = f"Bearer {data}"


@pytest.fixture
def task(app: Lowkiq) -> Task:
    """A task with one item."""
    return app.task("import")


@pytest.fixture
def served(app: Lowkiq, clock: ManualClock, worker: Any, handler: FailingHandler, task: Task) -> ASGIApp:
    """The dashboard of a queue with jobs that wait, have failed, and lie in the morgue."""
    worker.keep_runs = KeepRuns(100, payloads=True)
    handler.failing = {"1", "2", "3"}
    worker.push_many([{"id": n, "payload": {"n": n}} for n in range(6)])
    app.drain()
    app.operate(worker).waiting.kill(everything=True)
    handler.failing = {"4", "5"}
    worker.push_many([{"id": n} for n in range(4, 9)])
    app.drain()
    worker.push_many([{"id": n} for n in range(20, 29)])
    task.push_many(worker, [{"id": "of the task", "item": "row 1"}])
    return dashboard(app, auth=Auth(tokens=[Token("robot", SECRET, "operator")]), clock=clock)


def cases() -> Iterator[Any]:
    """Each operation as it is described; in each check every sixth against its description, as one code refuses all."""
    night = pytest.mark.nightly("every sixth operation is sent what its description forbids in each check")
    for place, one in enumerate(OPERATIONS):
        for mode in GenerationMode:
            marks = () if mode is GenerationMode.POSITIVE or place % 6 == 0 else night
            yield pytest.param(one, mode, marks=marks, id=f"{one.method} {one.path}-{mode.value}")


@pytest.mark.parametrize(("operation", "mode"), [*cases()])
def test_the_api_keeps_to_its_description(
    served: ASGIApp, operation: Any, mode: GenerationMode, queue_name: str, task: Task
) -> None:
    """What is allowed is served, what is not is refused, without a token nothing is; and all answers are described."""
    config = schemathesis.Config()
    # It takes no address that is relative to the description's own.
    config.projects.default.update(base_url=f"http://testserver{PREFIX}")
    schema = schemathesis.openapi.from_asgi(
        f"{PREFIX}/openapi.json", served, config=config, headers={"Authorization": f"Bearer {SECRET}"}
    )
    schema.auth()(Bearer)
    described = schema[operation.path][operation.method]

    # The same requests each time, as a test of the whole has to be.
    @seed(1)
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(case=described.as_strategy(generation_mode=mode))
    def check(case: Case[Any]) -> None:
        _aim(case, queue_name)
        if mode is GenerationMode.POSITIVE:
            _begin(case)
            _plan(case)
            if "id" in case.path_parameters:
                case.path_parameters["id"] = task.id
        case.call_and_validate()

    _run(check)


def _run(check: Callable[[], None]) -> None:
    check()


def _begin(case: Case[Any]) -> None:
    """Where the list or the action begins: what goes on from a page or a step is known to who was given it."""
    for part, name in ((case.query, "cursor"), (case.query, "after"), (case.body, "next")):
        if isinstance(part, dict):
            part.pop(name, None)


def _plan(case: Case[Any]) -> None:
    """What descriptions say in words alone: a schedule entry's one form of times, zone and name; what a view is of."""
    if case.operation.path == "/views/save" and isinstance(case.body, dict):
        case.body |= {"name": "late", "address": "errors?by=line"}
    if case.operation.path == "/schedule/put" and isinstance(case.body, dict):
        for other in ("every", "offset", "at"):
            case.body.pop(other, None)
        case.body |= {"cron": "0 4 * * *", "tz": "Europe/Berlin", "name": "made"}


def _aim(case: Case[Any], queue_name: str) -> None:
    """At the queue that there is, wherever some queue is named."""
    for part in (case.query, case.body):
        if isinstance(part, dict) and isinstance(part.get("queue"), str):
            part["queue"] = queue_name
