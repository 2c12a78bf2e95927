"""Forms of answers, of the API and of `--json`, as lines: a path within the answer and a type."""

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any, Final
from unittest.mock import patch

import msgspec

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.dashboard.api.openapi import description
from lowkiq_lambda.dashboard.api.operations import PREFIX
from lowkiq_lambda.dashboard.api.routes import OPERATIONS
from lowkiq_lambda.testing import ManualClock
from tests.kit.web import Browser

_SECRET: Final = "s" * 20
_OF_TODAY: Final = {"version", "fingerprint"}
"""What the code of today makes of a record, and may make otherwise tomorrow."""
LOOKS: Final = (
    *("/stats", "/queues", "/releases", "/processes", "/schedules", "/views", "/tasks", "/actions/undoable"),
    *("/shards?queue=Orders", "/history?queue=Orders&span=6h", "/hours?queue=Orders", "/errors", "/activity"),
    *("/why_late?queue=Held", "/runs?queue=Orders", "/waiting/count?queue=Orders", "/morgue/count?queue=Orders"),
    *("/job?queue=Orders&id=many", "/job?queue=Orders&id=dead", "/job?queue=Import&id=rows"),
    *("/job/payloads?queue=Orders&id=few", "/jobs/requests?queue=Orders", "/processing?queue=Held"),
    *("/waiting/range_by_id?queue=Orders", "/waiting/search?queue=Orders&prefix=re", "/reshard?queue=Moving"),
    *("/waiting/range_by_due_at?queue=Blocking", "/waiting/range_by_retry_count?queue=Orders"),
    *("/morgue/range_by_id?queue=Orders", "/morgue/range_by_updated_at?queue=Import", "/limits?queue=Limited"),
    *("/tenants?queue=Spread", "/schedule?queue=Orders&name=often"),
)
COMMANDS: Final = (
    *("stats", "stats Orders", "ls Orders", "ls Orders --in morgue", "ls Held --in in-flight", "show Orders many"),
    *("why Orders retried", "errors", "runs Orders", "activity", "processes", "schedules list", "tasks"),
    *("tenants Spread", "limits Limited"),
)


class Visit:
    """Somebody's program that asks the API."""

    def __init__(self, app: Lowkiq, clock: ManualClock) -> None:
        auth = Auth(tokens=[Token("ada", _SECRET, "operator")], editors=["ada"])
        self._browser = Browser(dashboard(app, auth=auth, clock=clock))
        self._headers = {"authorization": f"Bearer {_SECRET}", "content-type": "application/json"}

    def get(self, path: str) -> Any:
        """The answer; AssertionError for one that is not 200."""
        return self._ask("GET", path)

    def post(self, path: str, fields: dict[str, Any]) -> Any:
        """As `get`, for an act."""
        return self._ask("POST", path, json.dumps(fields).encode())

    def _ask(self, method: str, path: str, body: bytes = b"") -> Any:
        answer = self._browser.ask(method, PREFIX + path, self._headers, body)
        assert 200 == answer.status, f"{path}: {answer.text}"
        return answer.json


def answers(app: Lowkiq, clock: ManualClock, looks: tuple[str, ...] = LOOKS + COMMANDS) -> list[str]:
    """A line for each look, path and type that the answers have."""
    visit = Visit(app, clock)
    each = {look: visit.get(look) if look.startswith("/") else _printed(app, look) for look in looks}
    return sorted({f"{look}\t{path}" for look, answer in each.items() for path in _paths(answer, "")})


def seen(app: Lowkiq, clock: ManualClock) -> dict[str, Any]:
    """What operators see of all records, with its values, by the Python faces; of some the API has the only one."""
    visit = Visit(app, clock)
    views: dict[str, Any] = {
        **{path: visit.get(path) for path in ("/activity", "/views", "/history?queue=Orders&span=1h")},
        "tasks": [app.tasks.get(each.id).progress() for each in app.tasks.list().tasks],
        "schedules": app.schedules.all(),
        "processes": [*app.operate.processes()],
        "releases": app.operate.releases(),
    }
    for worker in app.workers:
        queue = app.operate(worker)
        views[worker.queue_name] = {
            "waiting": queue.waiting.list(limit=1_000),
            "in_flight": queue.in_flight.list(limit=1_000),
            "morgue": queue.morgue.list(limit=1_000),
            "blocked": queue.waiting.blocked(),
            "runs": queue.runs(),
            "requests": queue.requests(),
            "undoable": queue.undoable(),
            "damaged": queue.damaged(),
            # In the order of the server's Lua.
            "recovered": [msgspec.structs.replace(each, ids=tuple(sorted(each.ids))) for each in queue.recovered()],
            "shards": queue.shards(),
            "limits": visit.get(f"/limits?queue={worker.queue_name}"),
            "tenants": queue.tenants() if worker.tenants else None,
            "hours": queue.hours(),
            "layout": queue.resharding().layout,
        }
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(views))
    return values


def lacking(before: Any, now: Any, at: str = "") -> Iterator[str]:
    """Where a value of before is another one now, or gone; what has been added is left out."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in before.keys() - _OF_TODAY:
            value = before[name]
            yield from lacking(value, now.get(name), f"{at}.{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (value, other) in enumerate(zip(before, now, strict=True)):
            yield from lacking(value, other, f"{at}[{number}]")
    elif before != now:
        yield f"{at}: {before!r:.200} is {now!r:.200}"


def _printed(app: Lowkiq, words: str) -> Any:
    module = type(sys)("frozen_app")
    module.__dict__["app"] = app
    # Not by `patch.dict`, which would forget the modules that the command imports first.
    sys.modules[module.__name__] = module
    try:
        with patch.dict(os.environ, LOWKIQ_APP="frozen_app:app"), redirect_stdout(io.StringIO()) as out:
            code = main([*words.split(), "--json"])
    finally:
        del sys.modules[module.__name__]
    assert 0 == code, words
    return json.loads(out.getvalue())


def _paths(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield f"{at}: object"
        for name, each in value.items():
            yield from _paths(each, f"{at}.{name}")
    elif isinstance(value, list):
        yield f"{at}: array"
        for each in value:
            yield from _paths(each, f"{at}[]")
    elif value is not None:
        kind = {bool: "boolean", str: "string"}.get(type(value), "number")
        yield f"{at}: {kind}"


def described() -> list[str]:
    """The whole API as its description has it: parameters (<), those that must be given (<!), and answers (>)."""
    api: dict[str, Any] = description(OPERATIONS)
    return sorted({line for path, methods in api["paths"].items() for line in _operation(api, path, methods)})


def _operation(api: dict[str, Any], path: str, methods: dict[str, Any]) -> Iterator[str]:
    for method in methods.keys() & {"get", "post"}:
        one, head = methods[method], f"{method.upper()} {path}"
        for parameter in (_followed(api, each) for each in one.get("parameters", ())):
            yield f"{head} <{'!' if parameter.get('required') else ''} {parameter['name']}"
        body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        must = _followed(api, body).get("required", ())
        for name in _followed(api, body).get("properties", ()):
            yield f"{head} <{'!' if name in must else ''} {name}"
        for media in one["responses"].get("200", {}).get("content", {}).values():
            for line in _schema(api, media.get("schema", {}), "", ()):
                yield f"{head} > {line}"


def _followed(api: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        for number, part in enumerate(schema["$ref"].split("/")[1:]):
            schema = api[part] if number == 0 else schema[part]
    return schema


def _schema(api: dict[str, Any], schema: dict[str, Any], at: str, within: tuple[str, ...]) -> Iterator[str]:
    name = schema.get("$ref", "")
    if name and name in within:
        return
    schema, within = _followed(api, schema), (*within, name)
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _schema(api, each, at, within)
    kinds = schema.get("type", ())
    for kind in (kinds,) if isinstance(kinds, str) else kinds:
        yield f"{at}: {kind}"
    for field, each in schema.get("properties", {}).items():
        yield from _schema(api, each, f"{at}.{field}", within)
    if isinstance(schema.get("items"), dict):
        yield from _schema(api, schema["items"], f"{at}[]", within)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _schema(api, schema["additionalProperties"], f"{at}.*", within)
