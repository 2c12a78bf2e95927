"""Signing in and out."""

import re
from math import ceil
from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.security.sessions import give
from lowkiq_lambda.dashboard.visit import Visit

_OURS: Final = re.compile(r"[a-z][a-z0-9/-]*(\?[!-~]*)?", re.ASCII)
"""A path of ours, as it stands in a link: no scheme, no host, no way out of the folder."""


def show(visit: Visit) -> Response:
    """The form."""
    if visit.visitor is not None:
        return visit.go("")
    return _form(visit, _next(visit.query.get("next", "")))


def sign_in(visit: Visit) -> Response:
    """A cookie for who knows a password, and on to where he wanted to go."""
    site, wanted = visit.site, _next(visit.form.get("next", ""))
    client = visit.request.client
    source = client.host if client else ""
    wait = site.throttle.seconds_to_wait(source)
    if wait > 0:
        answer = _form(visit, wanted, 429, "Too many tries: wait a minute, then try again.")
        answer.headers["retry-after"] = str(ceil(wait))
        return answer
    cookie = site.auth.sign_in(visit.form.get("password", ""), site.now())
    if cookie is None:
        return _form(visit, wanted, 401, "That is not the password.")
    site.throttle.take_back(source)
    answer = visit.go_to(visit.root + wanted)
    give(answer.headers, cookie, visit.request.url.scheme)
    return answer


def sign_out(visit: Visit) -> Response:
    """The cookie is taken back."""
    answer = visit.go("sign-in")
    give(answer.headers, "", visit.request.url.scheme)
    return answer


def _form(visit: Visit, wanted: str, status: int = 200, sentence: str = "") -> Response:
    has_password = bool(visit.site.auth.accounts)
    return visit.page("sign_in.html", status, next=wanted, sentence=sentence, has_password=has_password)


def _next(given: str) -> str:
    return given if _OURS.fullmatch(given) and "//" not in given.partition("?")[0] else ""
