"""What programs can ask: an address, what is asked and what is answered, all read off one typed function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal, TypeVar, get_type_hints

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from lowkiq_lambda.dashboard.problems import Code
from lowkiq_lambda.dashboard.visit import Site, Visit, get, post

PREFIX: Final = "/api/v1"
Asked = TypeVar("Asked", bound=msgspec.Struct)
Run = Callable[[Visit, Asked], Any]


class Nothing(msgspec.Struct, frozen=True):
    """No question is asked."""


class Refused(Exception):
    """The request cannot be answered: the status, the code and the sentence say why."""

    def __init__(self, status: HTTPStatus, code: Code, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.code: Code = code
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Operation:
    """`asked` is read from the query of a GET, from the JSON body of a POST."""

    method: Literal["GET", "POST"]
    path: str
    run: Run[Any]
    asked: type[msgspec.Struct]
    answered: Any

    def route(self, site: Site) -> Route:
        """Where the operation is served."""
        return (get if self.method == "GET" else post)(site, PREFIX + self.path, self._respond)

    def _respond(self, visit: Visit) -> Response:
        try:
            asked = _from_query(visit, self.asked) if self.method == "GET" else _from_body(visit, self.asked)
            answer = self.run(visit, asked)
        except Refused as refused:
            return visit.refuse(refused.status, refused.sentence, refused.code)
        return Response(msgspec.json.encode(answer), media_type="application/json")


def operation(method: Literal["GET", "POST"], path: str, run: Run[Asked]) -> Operation:
    """The operation of a function, whose types say what is asked and answered."""
    hints: Mapping[str, Any] = get_type_hints(run, include_extras=True)
    return Operation(method, path, run, hints["asked"], hints["return"])


def _from_query(visit: Visit, asked: type[Asked]) -> Asked:
    query = visit.request.query_params
    known = {field.encode_name for field in msgspec.structs.fields(asked)}
    unknown = sorted({*query} - known)
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise Refused(HTTPStatus.BAD_REQUEST, "bad_parameter", f"{names}: nothing of that name can be asked.")
    repeated = sorted(name for name in known if len(query.getlist(name)) > 1)
    if repeated:
        raise Refused(HTTPStatus.BAD_REQUEST, "bad_parameter", f"{', '.join(repeated)}: given more than once.")
    try:
        return msgspec.convert({**query}, asked, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "bad_parameter", f"The query does not fit: {error}.") from error


def _from_body(visit: Visit, asked: type[Asked]) -> Asked:
    kind = visit.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "Send the body as application/json.")
    try:
        return msgspec.convert(_with_whole_numbers(msgspec.json.decode(visit.body)), asked)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "bad_body", f"The body does not fit: {error}.") from error


def _with_whole_numbers(body: object) -> object:
    """Where 5.0 is written, 5 is meant: JSON knows no difference."""
    if not isinstance(body, dict):
        return body
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in body.items()
    }
