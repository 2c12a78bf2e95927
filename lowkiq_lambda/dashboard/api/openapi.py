"""The description of the API, made of the very types that read the questions and write the answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from inspect import cleandoc
from typing import Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.api.operations import PREFIX, Nothing, Operation
from lowkiq_lambda.dashboard.problems import Code
from lowkiq_lambda.dashboard.security import cookies
from lowkiq_lambda.dashboard.visit import Visit

VERSION: Final = "1"
"""Of the API, as in its path; goes up where a program that used the last one would break."""
_SERVER: Final = f"../{PREFIX.rpartition('/')[2]}"
"""The API as seen from its description, so it is found behind any proxy; no slash ends it, as paths begin with one."""
_TEMPLATE: Final = "#/components/schemas/{name}"
_RESPONSE: Final = "#/components/responses/{}"
_PROBLEMS: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.BAD_REQUEST: "The request does not fit this description, or goes on from nothing that was answered.",
    HTTPStatus.UNAUTHORIZED: "Nobody is known by this token or cookie.",
    HTTPStatus.FORBIDDEN: "The visitor may look, but not act; or the request comes from another site's page.",
    HTTPStatus.NOT_FOUND: "There is no such queue, job or shard.",
    HTTPStatus.CONFLICT: "The queue has another number of shards than it had when the action began.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is larger than 1 MB.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not application/json.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The dashboard broke; its log says how.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Redis is away, or the app cannot be loaded.",
}
_OF_ALL: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no other answer (RFC 9457): `code` for programs, `detail` for people."""

    type: str
    title: str
    status: int
    code: Code
    detail: str


def shower(operations: Sequence[Operation]) -> Callable[[Visit], Response]:
    """Serves the description of the operations."""
    described = cache(lambda: msgspec.json.encode(description(operations)))

    def show(_visit: Visit) -> Response:
        return Response(described(), media_type="application/json")

    return show


def description(operations: Sequence[Operation]) -> dict[str, Any]:
    """An OpenAPI document."""
    types = [Problem, *(kind for one in operations for kind in (one.answered, one.asked))]
    references, components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    pairs = dict(zip(operations, zip(references[1::2], references[2::2], strict=True), strict=True))
    parameters = {one.asked.__name__ for one in operations if one.method == "GET"}
    paths: dict[str, dict[str, Any]] = {}
    for one, (answered, _) in pairs.items():
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one, answered, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lowkiq",
            "version": VERSION,
            "description": "The queues of an app: their numbers, their jobs, and what operators may do to them.",
        },
        "servers": [{"url": _SERVER}],
        "paths": paths,
        "security": [{"token": []}, {"session": []}],
        "components": {
            "schemas": {name: _tidy(one) for name, one in components.items() if name not in parameters},
            "responses": {status.name: _problem(status) for status in _PROBLEMS},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": cookies.PREFIX,
                    "description": "What signing in gives to a browser; the end of its name differs by dashboard.",
                },
            },
        },
    }


def _described(one: Operation, answered: Any, components: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a schema
    asked = components.get(one.asked.__name__, {})
    found: dict[str, Any] = {
        "operationId": one.run.__name__,
        "summary": cleandoc(one.run.__doc__ or ""),
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": answered}}},
            **{str(int(status)): {"$ref": _RESPONSE.format(status.name)} for status in sorted(_statuses(one))},
        },
    }
    if one.method == "GET":
        found["parameters"] = [*_parameters(asked)]
    else:
        schema = {"$ref": _TEMPLATE.format(name=one.asked.__name__)}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def _parameters(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, schema in asked.get("properties", {}).items():
        plain = {**schema}
        about = plain.pop("description", "")
        yield {
            "name": name,
            "in": "query",
            "required": name in asked.get("required", ()),
            "description": about,
            "schema": plain,
        }


def _statuses(one: Operation) -> Iterator[HTTPStatus]:
    yield from _OF_ALL
    if one.asked is not Nothing:
        yield HTTPStatus.NOT_FOUND
    if one.method == "POST":
        yield from (HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def _problem(status: HTTPStatus) -> dict[str, Any]:
    schema = {"$ref": _TEMPLATE.format(name=Problem.__name__)}
    return {"description": _PROBLEMS[status], "content": {"application/problem+json": {"schema": schema}}}


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """As msgspec wrote it, its docstring without the indentation of the code."""
    return {**schema, "description": cleandoc(schema["description"])} if "description" in schema else schema
