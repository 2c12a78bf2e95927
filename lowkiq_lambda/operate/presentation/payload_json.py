"""Any payload as JSON. An app's codec and mask may return any object."""

import json
from typing import Final

import msgspec


def payload_json(payload: object) -> bytes:
    """The payload as JSON, with the repr of objects that JSON does not have; at worst a JSON string that says so."""
    for encode in _ENCODERS:
        try:
            return encode(payload)
        except Exception:  # noqa: BLE001, S112 - an app's object may raise anything, and the next encoder may succeed
            continue
    return b'"(cannot be shown)"'


def _exact(payload: object) -> bytes:
    return msgspec.json.encode(payload, enc_hook=repr)


def _escaped(payload: object) -> bytes:
    """For texts that UTF-8 cannot encode."""
    return json.dumps(payload, default=repr, allow_nan=False).encode()


def _of_repr(payload: object) -> bytes:
    """For objects that contain themselves."""
    return json.dumps(repr(payload)).encode()


_ENCODERS: Final = (_exact, _escaped, _of_repr)
