"""Configured passwords: plain, or hashed by `hashed`."""

import base64
import hashlib
import hmac
import secrets
from itertools import pairwise
from typing import Final

from lowkiq_lambda.base.errors import ConfigError

LEAST: Final = 12
"""Characters of a password that a thousand guesses a minute do not find."""
_SCHEME: Final = "scrypt"
_COST: Final = 2**14
_MOST_COST: Final = 2**20
_BLOCK: Final = 8
_LENGTH: Final = 32
_SALT_LENGTH: Final = 16
_PARTS: Final = 4

_FEWEST: Final = 5
"""Different characters of a password."""
_ROWS: Final = ("1234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_MOST_BREAKS: Final = 2
"""Of a sequence; `abcdef123456` has one."""


def hashed(password: str) -> str:
    """A salted hash to configure in place of the password.

    Raises ConfigError for a password that is too short, repeats itself or is a sequence.

    >>> hashed("open sesame, please").partition(":")[0]
    'scrypt'
    """
    _check_strength(password, "The password")
    salt = secrets.token_bytes(_SALT_LENGTH)
    return ":".join([_SCHEME, str(_COST), _text(salt), _text(_scrypt(password.encode(), salt, _COST))])


def matches(password: str, configured: str) -> bool:
    """Whether the password is right, in constant time."""
    if not is_hashed(configured):
        return hmac.compare_digest(_digest(password), _digest(configured))
    cost, salt, expected = _parts(configured)
    return hmac.compare_digest(_scrypt(password.encode(errors="surrogatepass"), salt, cost), expected)


def are_same(one: str, other: str) -> bool:
    """Whether two configured passwords are the same, as far as can be said: two hashes may have different salts."""
    if is_hashed(one) == is_hashed(other):
        return one == other
    plain, hash_ = (other, one) if is_hashed(one) else (one, other)
    return matches(plain, hash_)


def check(configured: str, name: str, setting: str | None = None) -> None:
    """Raises ConfigError for an invalid hash or a password that others could guess."""
    if not is_hashed(configured):
        _check_strength(configured, name, setting)
        return
    try:
        cost, salt, expected = _parts(configured)
    except ValueError:
        raise ConfigError(f"{name} looks like a hashed password, but is invalid.", setting=setting) from None
    if not (1 < cost <= _MOST_COST and cost & (cost - 1) == 0 and salt and len(expected) == _LENGTH):
        raise ConfigError(f"{name} looks like a hashed password, but is invalid.", setting=setting)


def signing_key(configured: str) -> bytes:
    """A key derived from the configured password.

    A holder of a signed cookie could try passwords against it, so a plain password goes through scrypt. Each account
    has its own key, so a cookie reveals only the password that its owner knows.
    """
    if is_hashed(configured):
        return hmac.digest(configured.encode(), b"lowkiq session", "sha256")
    return _scrypt(configured.encode(), b"lowkiq session", _COST)


def is_hashed(configured: str) -> bool:
    """Whether the configured password is a hash."""
    return configured.startswith(f"{_SCHEME}:")


def _check_strength(password: str, name: str, setting: str | None = None) -> None:
    if len(password.strip()) < LEAST:
        raise ConfigError(
            f"{name} has {len(password.strip())} characters: it needs at least {LEAST}, or others could guess it.",
            setting=setting,
        )
    if weak := weakness(password):
        raise ConfigError(
            f"{name} {weak}, so others could guess it. `python -c 'import secrets; print(secrets.token_urlsafe())'` "
            "prints a good one.",
            setting=setting,
        )


def _parts(configured: str) -> tuple[int, bytes, bytes]:
    parts = configured.split(":")
    if len(parts) != _PARTS:
        raise ValueError(configured)
    return int(parts[1]), base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)


def _scrypt(password: bytes, salt: bytes, cost: int) -> bytes:
    memory = 2 * 128 * cost * _BLOCK
    return hashlib.scrypt(password, salt=salt, n=cost, r=_BLOCK, p=1, maxmem=memory, dklen=_LENGTH)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def weakness(password: str) -> str | None:
    """Why others could guess the password; None if the password neither repeats itself nor is a sequence."""
    text = password.strip().lower()
    if len({*text}) < _FEWEST:
        return f"has fewer than {_FEWEST} different characters"
    if text in (text + text)[1:-1]:
        return "repeats itself"
    if sum(not _are_neighbours(*pair) for pair in pairwise(text)) <= _MOST_BREAKS:
        return "is a sequence of the alphabet, the digits or the keyboard"
    return None


def _are_neighbours(one: str, other: str) -> bool:
    """Whether they follow each other in a row, in either direction, from its end to its beginning too."""
    if one == other:
        return True
    return any(
        abs(row.index(one) - row.index(other)) in {1, len(row) - 1} for row in _ROWS if one in row and other in row
    )
