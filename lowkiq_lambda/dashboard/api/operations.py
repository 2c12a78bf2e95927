"""Operations of the API. The type hints of one function give an operation's parameters and response."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Final, Literal, TypeVar, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lowkiq_lambda.dashboard.api.responses import polled_response
from lowkiq_lambda.dashboard.context import RequestContext, Site, get, post
from lowkiq_lambda.dashboard.problems import Code
from lowkiq_lambda.operate.presentation.pages import Polled
from lowkiq_lambda.views.activity import ReasonMissing

PREFIX: Final = "/api/v1"
Params = TypeVar("Params", bound=msgspec.Struct)
_NO_MATCH: Final = re.compile(r"Expected `str` matching regex .* - at `\$\.(?:\w+\.)*(?P<field>\w+)`", re.DOTALL)
"""What msgspec says of a text that does not match a pattern: the pattern is for programs."""
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
Run = Callable[[RequestContext, Params], Any]

_AT: Final = r"(?: - at `(?:key in )?\$\.?(?P<at>.*?)`)?"
_LIMITS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


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
    """One operation. `params` come from the path, and from the query of a GET or the JSON body of a POST.

    A POST that has a placeholder in its path takes no body.
    """

    method: Literal["GET", "POST"]
    path: str
    run: Run[Any]
    params: type[msgspec.Struct]
    response: Any

    @property
    def placeholders(self) -> frozenset[str]:
        """The parameters that the path has."""
        return frozenset(_PLACEHOLDER.findall(self.path))

    @property
    def is_polled(self) -> bool:
        """Whether programs ask again and again until something has changed."""
        return self.method == "GET" and isinstance(self.response, type) and issubclass(self.response, Polled)

    def route(self, site: Site) -> Route:
        """The route of the operation."""
        return (get if self.method == "GET" else post)(site, PREFIX + self.path, self._respond)

    def _respond(self, context: RequestContext) -> Response:
        try:
            params = self._params_of(context)
            context.request.state.reason = getattr(params, "reason", "")
            response = self.run(context, params)
        except ApiError as error:
            return context.refuse(error.status, error.sentence, error.code)
        except ReasonMissing as error:
            return context.refuse(HTTPStatus.BAD_REQUEST, f"`reason` is missing. {error}", "reason_missing")
        if self.is_polled:
            return polled_response(context.request, response)
        return Response(msgspec.json.encode(response), media_type="application/json")

    def _params_of(self, context: RequestContext) -> msgspec.Struct:
        if self.method == "POST" and not self.placeholders:
            return _from_body(context, self.params)
        return params_from(context.request, self.params)


def operation(method: Literal["GET", "POST"], path: str, run: Run[Params]) -> Operation:
    """The operation of a function, with the types of its hints."""
    hints: Mapping[str, Any] = get_type_hints(run, include_extras=True)
    return Operation(method, path, run, hints["params"], hints["return"])


def params_from(request: Request, params: type[Params]) -> Params:
    """The parameters in the path and the query. Raises ApiError."""
    query = request.query_params
    allowed = {field.encode_name for field in msgspec.structs.fields(params)} - {*request.path_params}
    unknown = sorted({*query} - allowed)
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"Unknown parameters: {names}.")
    repeated = sorted(name for name in allowed if len(query.getlist(name)) > 1)
    if repeated:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"Repeated parameters: {', '.join(repeated)}.")
    bounds = _descriptions_of_bounds(params)
    # No bound has a space: it was a + that was not escaped.
    values = {name: value.replace(" ", "+") if name in bounds else value for name, value in query.items()}
    try:
        return msgspec.convert(values | request.path_params, params, strict=False)
    except msgspec.ValidationError as error:
        where = "path or query" if request.path_params else "query"
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"Invalid {where}: {_why(error, params)}") from error


def _from_body(context: RequestContext, params: type[Params]) -> Params:
    kind = context.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "Send the body as application/json."
        )
    try:
        return msgspec.convert(_with_whole_numbers(_decoded(context.body)), params)
    except msgspec.ValidationError as error:
        raise _bad_body(_why(error, params)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad_body(f"{error}.") from error


def _decoded(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    """The body. Raises ApiError for what is JSON by its grammar and has no meaning, and what msgspec raises."""
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        if _has_lone_surrogate(body):
            raise _bad_body(r"a text has half of a surrogate pair, one of \ud800 to \udfff.") from error
        raise
    # msgspec takes the last of several, and who sent them may have meant another.
    json.loads(body, object_pairs_hook=_without_repeats, parse_int=str, parse_float=str)
    return decoded


def _has_lone_surrogate(body: bytes) -> bool:
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except ValueError:
        return False
    return False


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = ", ".join(sorted({repr(name) for name in names if names.count(name) > 1}))
        raise _bad_body(f"repeated keys: {repeated}.")
    return by_name


def _bad_body(why: str) -> ApiError:
    return ApiError(HTTPStatus.BAD_REQUEST, "bad_body", f"Invalid body: {why}")


def _why(error: msgspec.ValidationError, params: type[msgspec.Struct]) -> str:
    """What is wrong, in a sentence for people."""
    mismatch = _NO_MATCH.fullmatch(str(error))
    described = mismatch and _descriptions_of_bounds(params).get(mismatch["field"])
    if mismatch is None or described is None:
        return sentence(str(error))
    return f"`{mismatch['field']}` is not as it must be. {described}"


@cache
def _descriptions_of_bounds(params: type[msgspec.Struct]) -> Mapping[str, str]:
    """The descriptions of the fields whose text must match a pattern, those of filters too, by name."""
    _, schemas = msgspec.json.schema_components([params])
    fields = [field for schema in schemas.values() for field in schema.get("properties", {}).items()]
    return {name: field["description"] for name, field in fields if "pattern" in field}


def _with_whole_numbers(body: object) -> object:
    """5.0 becomes 5, as JSON has one type of number; a payload stays as it is."""
    if isinstance(body, dict):
        return {name: value if name == "payload" else _with_whole_numbers(value) for name, value in body.items()}
    return int(body) if isinstance(body, float) and body.is_integer() else body


def sentence(error: str) -> str:
    """Of a message of msgspec.

    >>> sentence("Expected `int` <= 1000 - at `$.limit`")
    '`limit` must be at most 1000.'
    >>> sentence("Expected `float | null`, got `str` - at `$.filter.seconds`")
    '`filter.seconds` must be a number or null, not a text.'
    >>> sentence("Expected `array` of length >= 1 - at `$.ids`")
    '`ids` must have at least 1 entry.'
    """
    for pattern, words in _FORMS:
        if match := pattern.fullmatch(error):
            return words(match)
    return f"{error}."


def _field(match: re.Match[str]) -> str:
    return f"`{match['at']}`" if match["at"] else "the whole of it"


def _length(match: re.Match[str], one: str, many: str) -> str:
    unit = one if match["bound"] == "1" else many
    return f"{_field(match)} must have {_LIMITS[match['sign']]} {match['bound']} {unit}."


def _kinds(names: str) -> str:
    return " or ".join(_KINDS.get(name, f"`{name}`") for name in names.split(" | "))


def _form(
    pattern: str, words: Callable[[re.Match[str]], str]
) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str]]:
    return re.compile(pattern + _AT, re.DOTALL), words


_FORMS: Final = (
    _form(r"Object missing required field `(?P<name>.+?)`", lambda match: f"`{match['name']}` is missing."),
    _form(r"Object contains unknown field `(?P<name>.+?)`", lambda match: f"There is no field `{match['name']}`."),
    _form(r"Invalid enum value (?P<value>.+?)", lambda match: f"{_field(match)} cannot be {match['value']}."),
    _form(
        r"Expected `(?:int|float|number)` (?P<sign>[<>]=?) (?P<bound>\S+)",
        lambda match: f"{_field(match)} must be {_LIMITS[match['sign']]} {match['bound']}.",
    ),
    _form(
        r"Expected `str` of length (?P<sign>[<>]=?) (?P<bound>\d+)",
        lambda match: _length(match, "character", "characters"),
    ),
    _form(
        r"Expected `array` of length (?P<sign>[<>]=?) (?P<bound>\d+)",
        lambda match: _length(match, "entry", "entries"),
    ),
    _form(
        r"Expected `(?P<wanted>[^`]+)`, got `(?P<given>[^`]+)`",
        lambda match: f"{_field(match)} must be {_kinds(match['wanted'])}, not {_kinds(match['given'])}.",
    ),
    _form(r"Expected `(?P<wanted>[^`]+)`", lambda match: f"{_field(match)} must be {_kinds(match['wanted'])}."),
)
