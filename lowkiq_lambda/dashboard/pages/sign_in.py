"""Signing in and out."""

import logging
from math import ceil

from starlette.responses import Response

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.security.caller import caller_of
from lowkiq_lambda.dashboard.security.paths import checked
from lowkiq_lambda.dashboard.security.sessions import Cookie, Session, cookies_of
from lowkiq_lambda.operate.inspect.signed_out import sign_out as sign_out_session

logger = logging.getLogger(__name__)


def show(context: RequestContext) -> Response:
    """The form."""
    if context.visitor is not None:
        return context.redirect("")
    return _form(context, checked(context.query.get("next", "")))


def sign_in(context: RequestContext) -> Response:
    """Signs in by password, and redirects to the page that was requested."""
    site, scope, target = context.site, context.request.scope, checked(context.form.get("next", ""))
    caller = caller_of(scope)
    known_session = site.auth.known_session(scope, [*cookies_of(context.request.headers)])
    wait = site.throttle.seconds_to_wait(caller, known_session)
    if wait > 0:
        activity.note_sign_in("locked out", caller)
        answer = _form(context, target, 429, "Too many attempts. Wait a minute and try again.")
        answer.headers["retry-after"] = str(ceil(wait))
        return answer
    signed_in = site.auth.sign_in(scope, context.form.get("password", ""), site.now())
    if signed_in is None:
        activity.note_sign_in("wrong password", caller)
        return _form(context, target, 401, "The password is wrong.")
    session, cookie = signed_in
    site.throttle.forget(caller, known_session)
    activity.note_sign_in("signed in", caller, session)
    answer = context.redirect_to(context.root + target)
    cookie.set_on(answer.headers, context.request.url.scheme)
    return answer


def sign_out(context: RequestContext) -> Response:
    """Deletes the cookie, and keeps the session's id, so that copies of the cookie are worth less."""
    answer = context.redirect("sign-in")
    if context.visitor is not None and context.visitor.signed_in is not None:
        signed_in = context.visitor.signed_in
        activity.note_sign_in("signed out", caller_of(context.request.scope), signed_in.session)
        _end(context, signed_in.session)
        Cookie(signed_in.cookie, "").set_on(answer.headers, context.request.url.scheme)
    return answer


def _end(context: RequestContext, session: Session) -> None:
    seconds = context.site.auth.last_end(session) - context.site.now()
    try:
        sign_out_session(context.app.core.backend, context.app.config.redis_retry_for, session.id, seconds)
    except LowkiqError:
        logger.warning("a session was signed out in its browser alone: a copy of its cookie works on", exc_info=True)


def _form(context: RequestContext, target: str, status: int = 200, sentence: str = "") -> Response:
    has_password = bool(context.site.auth.accounts)
    return context.render("sign_in.html", status, next=target, sentence=sentence, has_password=has_password)
