"""HTTP Basic: whoever does not know the user and the password sees nothing, and learns nothing."""

import base64
import binascii
import hashlib
import hmac
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from lowkiq_lambda.aws.web import Answer, Request, Respond, notice
from lowkiq_lambda.errors import LowkiqError

logger = logging.getLogger(__name__)

_ASK: Final = {"www-authenticate": 'Basic realm="lowkiq", charset="UTF-8"'}


class Credentials(msgspec.Struct, frozen=True):
    """Who may come in."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Without the password, as it may be printed."""
        return f"Credentials({self.user!r})"


def guarded(respond: Respond, credentials: Callable[[], Credentials | None]) -> Respond:
    """Responds to those who sign in; to nobody where there are no credentials to compare with."""

    def guard(request: Request) -> Answer:
        try:
            known = credentials()
        except LowkiqError:
            logger.exception("the password of the dashboard cannot be read")
            return notice(503, "The dashboard is shut", "Its password cannot be read; the function's log says why.")
        if known is None:
            return notice(
                503,
                "The dashboard has no password",
                "Nobody can sign in before there is one: set LOWKIQ_DASHBOARD_PASSWORD, "
                "or LOWKIQ_DASHBOARD_SECRET_ARN to the ARN of a secret that holds it.",
            )
        given = request.headers.get("authorization")
        if given is None or not _matches(given, known):
            # Browsers ask once without; only what was tried is worth a look.
            if given is not None:
                logger.warning("a sign-in to the dashboard was refused")
            return notice(401, "Sign in", "The dashboard asks for its user and password.", **_ASK)
        return respond(request)

    return guard


def _matches(authorization: str, known: Credentials) -> bool:
    scheme, _, encoded = authorization.partition(" ")
    try:
        given = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return False
    user, colon, password = given.partition(b":")
    # Both are compared, and as digests: the time it takes tells neither which was wrong nor how long it should be.
    same_user = hmac.compare_digest(_digest(user), _digest(known.user.encode()))
    same_password = hmac.compare_digest(_digest(password), _digest(known.password.encode()))
    return scheme.lower() == "basic" and bool(colon) and same_user and same_password


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
