"""The dashboard as a view, for the users of the site: by WSGI and by ASGI, with sessions and permissions of Django."""

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

from asgiref.sync import async_to_sync
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.views.decorators.csrf import csrf_exempt

from lowkiq_lambda.contrib.django.installed import LABEL, lowkiq_app
from lowkiq_lambda.dashboard import Auth, Visitor
from lowkiq_lambda.dashboard import dashboard as dashboard_app

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser
    from starlette.types import ASGIApp, Message, Scope

_VISITOR: Final = "lowkiq.django.visitor"
_SIGN_IN: Final = "sign-in"


# Its forms are refused where they come from other sites, by what browsers say of their origin.
@csrf_exempt
def dashboard(request: HttpRequest, path: str = "") -> HttpResponseBase:
    """The page of the dashboard below `path`, for users with the permission `lowkiq.operate` or `lowkiq.view`."""
    visitor = _visitor_of(request)
    if _is_of_browser(request):
        if visitor is None:
            return _turned_away(request)
        if path == _SIGN_IN:
            # The site has its own; people come from there to where they wanted to go.
            return HttpResponseRedirect("./")
    return async_to_sync(_answer)({**_scope_of(request, path), _VISITOR: visitor}, request.body)


@cache
def _served() -> "ASGIApp":
    return dashboard_app(lowkiq_app(), auth=Auth(trust=lambda scope: scope[_VISITOR]), base_path="")


def _visitor_of(request: HttpRequest) -> Visitor | None:
    user = cast("AbstractUser | AnonymousUser", request.user)
    if user.has_perm(f"{LABEL}.operate"):
        return Visitor(user.get_username(), "operator")
    return Visitor(user.get_username(), "reader") if user.has_perm(f"{LABEL}.view") else None


def _is_of_browser(request: HttpRequest) -> bool:
    """Whether a browser asks for a page or a part of one: programs, which say that they take anything, get a status."""
    asks = "text/html" in request.headers.get("Accept", "") or "HX-Request" in request.headers
    return asks and request.method in ("GET", "HEAD")


def _turned_away(request: HttpRequest) -> HttpResponseBase:
    """The response to a browser without access. Raises PermissionDenied if only a permission is missing."""
    if request.user.is_authenticated:
        raise PermissionDenied
    if "HX-Request" in request.headers:
        # A part of a page whose user has signed out: the whole page comes here anew.
        return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Refresh": "true"})
    return redirect_to_login(request.get_full_path())


def _scope_of(request: HttpRequest, path: str) -> "Scope":
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "root_path": request.path.removesuffix(path).rstrip("/"),
        "query_string": request.META.get("QUERY_STRING", "").encode("latin-1"),
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()
        ],
        "client": (request.META.get("REMOTE_ADDR", ""), 0),
    }


async def _answer(scope: "Scope", body: bytes) -> HttpResponse:
    response, parts = HttpResponse(), list[bytes]()

    async def receive() -> "Message":
        return {"type": "http.request", "body": body}

    async def send(message: "Message") -> None:
        if message["type"] == "http.response.start":
            response.status_code = message["status"]
            del response.headers["Content-Type"]
            for name, value in message.get("headers", ()):
                if name.lower() == b"set-cookie":
                    response.cookies.load(value.decode("latin-1"))
                else:
                    response.headers[name.decode("latin-1")] = value.decode("latin-1")
        else:
            parts.append(message.get("body", b""))

    await _served()(scope, receive, send)
    response.content = b"".join(parts)
    return response
