"""Somebody who signs tokens, as Cognito or any other server of OpenID Connect does."""

import base64
import hashlib
import json
import time
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

AUDIENCE: Final = "the-dashboard"

# A key of these tests alone: nobody else believes it.
_MODULUS: Final = int(
    "9fe09b105ae73d005207ef2df50c3dd89dd2d7083562acbc9be5b83a44daba88"
    "459e22ed2c9f1f78fa7116e43a34b91ca8145010ca449dff4f0d68ccbdcef9fb"
    "daabb28e1a0a144136d4ba5a1b15f6337793704ae110afe2d7efc62eed16c688"
    "b3a531deaacfc99899f6460bb2e7ba805afd71e382d9ba5dd36f4b04ae0d2091",
    16,
)
_SECRET: Final = int(
    "89febcf8eded7f9aa23354ffeeee0507ce99a89ede2d70794f7a857c4de8196e"
    "fbe015b76f775d1bf7d6daf25d471aac206b7ffc2e09f1f1e752e4ad2bfbd58a"
    "6f04c911eb96e179bcae68cf63914336df9a54039dadee69813d3ab30b991ad5"
    "f0937e9b4f931cec98d7ffb8ce785a89ee354d9547d3c5198627ac3f52b950fd",
    16,
)
_EXPONENT: Final = 65537
_DIGEST_INFO: Final = bytes.fromhex("3031300d060960864801650304020105000420")
"""What stands before a SHA-256 digest in a signature by PKCS #1."""


def issuer() -> Starlette:
    """Tells its public key, as anybody who checks a token asks for it."""
    key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "only", "n": _number(_MODULUS), "e": _number(_EXPONENT)}

    def discovery(request: Request) -> JSONResponse:
        origin = str(request.base_url).rstrip("/")
        return JSONResponse({"issuer": origin, "jwks_uri": f"{origin}/keys"})

    def keys(_request: Request) -> JSONResponse:
        return JSONResponse({"keys": [key]})

    return Starlette(routes=[Route("/.well-known/openid-configuration", discovery), Route("/keys", keys)])


def token(origin: str, **claims: Any) -> str:
    """A token of the issuer at `origin` with these claims, good for a minute."""
    now = int(time.time())
    whole = {"iss": origin, "aud": AUDIENCE, "iat": now, "exp": now + 60, **claims}
    signed = ".".join(_text(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "only"}, whole))
    return f"{signed}.{_text(_signature(signed.encode()))}"


def _signature(signed: bytes) -> bytes:
    """By RSASSA-PKCS1-v1_5."""
    length = (_MODULUS.bit_length() + 7) // 8
    ending = b"\0" + _DIGEST_INFO + hashlib.sha256(signed).digest()
    padded = b"\0\1".ljust(length - len(ending), b"\xff") + ending
    return pow(int.from_bytes(padded, "big"), _SECRET, _MODULUS).to_bytes(length, "big")


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
