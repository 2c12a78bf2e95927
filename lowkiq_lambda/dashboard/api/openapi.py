"""The OpenAPI description, made from the types that decode requests and encode responses."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from inspect import cleandoc
from typing import Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.api.operations import PREFIX, NoParams, Operation
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.problems import Code
from lowkiq_lambda.dashboard.security import sessions
from lowkiq_lambda.dashboard.security.gate import PROOF_HEADER

VERSION: Final = "1"
"""The API's version, as in its path; a change that breaks clients increases it."""
_SERVER: Final = f"../{PREFIX.rpartition('/')[2]}"
"""The API's path relative to the description, so that it is right behind any proxy."""
_ROOT: Final = [{"url": "../..", "description": "The dashboard itself."}]
_TEMPLATE: Final = "#/components/schemas/{name}"
_RESPONSE: Final = "#/components/responses/{}"
_IF_NONE_MATCH: Final = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of an earlier response: if nothing has changed, the response is 304 without a body.",
    "schema": {"type": "string"},
}
_ETAG: Final = {"ETag": {"description": "The `version` of the response.", "schema": {"type": "string"}}}
_PROBLEMS: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.BAD_REQUEST: "The request does not match this description, or its cursor or entry is invalid.",
    HTTPStatus.UNAUTHORIZED: "The token or cookie is missing or invalid.",
    HTTPStatus.FORBIDDEN: "The account is read-only, or another site's page sent the request.",
    HTTPStatus.NOT_FOUND: "The app has no such queue, job, shard, entry or task.",
    HTTPStatus.CONFLICT: "The number of shards changed since the action began.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is larger than 1 MB.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not application/json.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The dashboard failed. Its log has the error.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Redis is unreachable, or the app cannot be loaded.",
}
_OF_ALL: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)


_FOR_MONITORS: Final = {
    "/healthz": {
        "servers": _ROOT,
        "get": {
            "operationId": "healthz",
            "summary": "Whether the app loads and Redis answers. It is open to everybody.",
            "security": [],
            "responses": {
                status: {"description": meaning, "content": {"application/json": {"schema": {"type": "object"}}}}
                for status, meaning in (("200", "All parts answer."), ("503", "The part that is `unreachable`."))
            },
        },
    },
    "/metrics": {
        "servers": _ROOT,
        "get": {
            "operationId": "metrics",
            "summary": "Metrics of all queues in the text format of Prometheus.",
            "responses": {
                "200": {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}},
                "401": {"$ref": _RESPONSE.format(HTTPStatus.UNAUTHORIZED.name)},
                "503": {"$ref": _RESPONSE.format(HTTPStatus.SERVICE_UNAVAILABLE.name)},
            },
        },
    },
}
"""Paths beside the API."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error (RFC 9457): `code` for programs, `detail` for people."""

    type: str
    title: str
    status: int
    code: Code
    detail: str


def openapi_endpoint(operations: Sequence[Operation]) -> Callable[[RequestContext], Response]:
    """A handler that serves the description of the operations."""
    encoded = cache(lambda: msgspec.json.encode(description(operations)))

    def show(_context: RequestContext) -> Response:
        return Response(encoded(), media_type="application/json")

    return show


def description(operations: Sequence[Operation]) -> dict[str, Any]:
    """An OpenAPI document."""
    types = [Problem, *(each for operation in operations for each in (operation.response, operation.params))]
    references, components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    pairs = dict(zip(operations, zip(references[1::2], references[2::2], strict=True), strict=True))
    parameters = {
        operation.params.__name__ for operation in operations if operation.method == "GET" or operation.placeholders
    }
    paths: dict[str, dict[str, Any]] = {}
    for operation, (response, _) in pairs.items():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, response, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lowkiq",
            "version": VERSION,
            "description": "The queues of an app: their metrics, their jobs, and the actions of operators.",
        },
        "servers": [{"url": _SERVER}],
        "paths": paths | _FOR_MONITORS,
        "security": [{"token": []}, {"session": []}],
        "components": {
            "schemas": {name: _tidy(schema) for name, schema in components.items() if name not in parameters},
            "responses": {status.name: _problem(status) for status in _PROBLEMS},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "form_token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": PROOF_HEADER,
                    "description": "With the cookie every POST needs it: the value of the field `csrf` of any form.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": sessions.PREFIX,
                    "description": "The session cookie of a browser. Each dashboard has another suffix of the name.",
                },
            },
        },
    }


def _described(operation: Operation, response: Any, components: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a schema
    params = components.get(operation.params.__name__, {})
    described: dict[str, Any] = {
        "operationId": operation.run.__name__,
        "summary": cleandoc(operation.run.__doc__ or ""),
        "responses": {
            "200": {"description": "The response.", "content": {"application/json": {"schema": response}}},
            **{str(int(status)): {"$ref": _RESPONSE.format(status.name)} for status in sorted(_statuses(operation))},
        },
    }
    if operation.method == "POST":
        described["security"] = [{"token": []}, {"session": [], "form_token": []}]
    if operation.method == "GET" or operation.placeholders:
        described["parameters"] = [*_parameters(params, operation.placeholders)]
    else:
        schema = {"$ref": _TEMPLATE.format(name=operation.params.__name__)}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.is_polled:
        described["parameters"].append(_IF_NONE_MATCH)
        described["responses"]["200"]["headers"] = _ETAG
        described["responses"]["304"] = {"description": "Nothing has changed.", "headers": _ETAG}
    return described


def _parameters(params: Mapping[str, Any], placeholders: Collection[str]) -> Iterator[dict[str, Any]]:
    for name, schema in params.get("properties", {}).items():
        plain = {**schema}
        about = plain.pop("description", "")
        yield {
            "name": name,
            "in": "path" if name in placeholders else "query",
            "required": name in params.get("required", ()),
            "description": about,
            "schema": plain,
        }


def _statuses(operation: Operation) -> Iterator[HTTPStatus]:
    yield from _OF_ALL
    if operation.params is not NoParams:
        yield HTTPStatus.NOT_FOUND
    if operation.method == "POST":
        yield from (HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def _problem(status: HTTPStatus) -> dict[str, Any]:
    schema = {"$ref": _TEMPLATE.format(name=Problem.__name__)}
    return {"description": _PROBLEMS[status], "content": {"application/problem+json": {"schema": schema}}}


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its description dedented."""
    return {**schema, "description": cleandoc(schema["description"])} if "description" in schema else schema
