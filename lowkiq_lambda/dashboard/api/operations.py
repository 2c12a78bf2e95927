"""Operations of the API. The type hints of one function give an operation's parameters and response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal, TypeVar, get_type_hints

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from lowkiq_lambda.dashboard.context import RequestContext, Site, get, post
from lowkiq_lambda.dashboard.problems import Code

PREFIX: Final = "/api/v1"
Params = TypeVar("Params", bound=msgspec.Struct)
Run = Callable[[RequestContext, Params], Any]


class NoParams(msgspec.Struct, frozen=True):
    """An operation without parameters."""


class ApiError(Exception):
    """An error response: its status, its code, and a sentence for people."""

    def __init__(self, status: HTTPStatus, code: Code, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.code: Code = code
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `params` come from the query of a GET, or from the JSON body of a POST."""

    method: Literal["GET", "POST"]
    path: str
    run: Run[Any]
    params: type[msgspec.Struct]
    response: Any

    def route(self, site: Site) -> Route:
        """The route of the operation."""
        return (get if self.method == "GET" else post)(site, PREFIX + self.path, self._respond)

    def _respond(self, context: RequestContext) -> Response:
        try:
            params = _from_query(context, self.params) if self.method == "GET" else _from_body(context, self.params)
            response = self.run(context, params)
        except ApiError as error:
            return context.refuse(error.status, error.sentence, error.code)
        return Response(msgspec.json.encode(response), media_type="application/json")


def operation(method: Literal["GET", "POST"], path: str, run: Run[Params]) -> Operation:
    """The operation of a function, with the types of its hints."""
    hints: Mapping[str, Any] = get_type_hints(run, include_extras=True)
    return Operation(method, path, run, hints["params"], hints["return"])


def _from_query(context: RequestContext, params: type[Params]) -> Params:
    query = context.request.query_params
    known = {field.encode_name for field in msgspec.structs.fields(params)}
    unknown = sorted({*query} - known)
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"Unknown parameters: {names}.")
    repeated = sorted(name for name in known if len(query.getlist(name)) > 1)
    if repeated:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"Repeated parameters: {', '.join(repeated)}.")
    try:
        return msgspec.convert({**query}, params, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"Invalid query: {error}.") from error


def _from_body(context: RequestContext, params: type[Params]) -> Params:
    kind = context.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "Send the body as application/json."
        )
    try:
        return msgspec.convert(_with_whole_numbers(msgspec.json.decode(context.body)), params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_body", f"Invalid body: {error}.") from error


def _with_whole_numbers(body: object) -> object:
    """5.0 becomes 5, as JSON has one type of number."""
    if not isinstance(body, dict):
        return body
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in body.items()
    }
