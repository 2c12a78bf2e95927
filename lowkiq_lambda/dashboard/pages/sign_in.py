"""Signing in and out."""

from math import ceil

from starlette.responses import Response

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.security.cookies import Cookie, brought_by
from lowkiq_lambda.dashboard.security.sources import source_of
from lowkiq_lambda.dashboard.security.ways_back import checked
from lowkiq_lambda.dashboard.visit import Visit


def show(visit: Visit) -> Response:
    """The form."""
    if visit.visitor is not None:
        return visit.go("")
    return _form(visit, checked(visit.query.get("next", "")))


def sign_in(visit: Visit) -> Response:
    """A cookie for those who know a password, and on to where they wanted to go."""
    site, scope, wanted = visit.site, visit.request.scope, checked(visit.form.get("next", ""))
    source = source_of(scope)
    before = site.auth.came_before_as(scope, [*brought_by(visit.request.headers)])
    wait = site.throttle.seconds_to_wait(source, before)
    if wait > 0:
        audit.note_sign_in("locked out", source)
        answer = _form(visit, wanted, 429, "Too many tries: wait a minute, then try again.")
        answer.headers["retry-after"] = str(ceil(wait))
        return answer
    found = site.auth.sign_in(scope, visit.form.get("password", ""), site.now())
    if found is None:
        audit.note_sign_in("wrong password", source)
        return _form(visit, wanted, 401, "That is not the password.")
    account, cookie = found
    site.throttle.take_back(source, before)
    audit.note_sign_in("signed in", source, account)
    answer = visit.go_to(visit.root + wanted)
    cookie.give(answer.headers, visit.request.url.scheme)
    return answer


def sign_out(visit: Visit) -> Response:
    """The cookie is taken back."""
    answer = visit.go("sign-in")
    if visit.visitor is not None and visit.visitor.signed_in is not None:
        Cookie(visit.visitor.signed_in.cookie, "").give(answer.headers, visit.request.url.scheme)
    return answer


def _form(visit: Visit, wanted: str, status: int = 200, sentence: str = "") -> Response:
    has_password = bool(visit.site.auth.accounts)
    return visit.page("sign_in.html", status, next=wanted, sentence=sentence, has_password=has_password)
