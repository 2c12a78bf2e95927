"""Cursors with values that JSON has no form for: each is kept as `{"~": its kind, "v": its text}`.

Only cursors that hold such a value, or the text "~", come here.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from lowkiq_lambda.base.errors import CursorError

MARK: Final = "~"

_FROM_TEXT: Final[dict[str, Callable[[str], object]]] = {
    "uuid": UUID,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "decimal": Decimal,
    "bytes": lambda text: b64decode(text, validate=True),
}


def plain(value: object, path: str = "") -> Any:  # noqa: ANN401 - any JSON
    """The value as JSON has it; a value of no such type stays as it is.

    One value has one text: a cursor has moved if its bytes are others. An aware datetime is written in UTC. Raises
    CursorError, naming the path, for a dict with the key "~", and for a value that its text would not give back, as of
    a Decimal that is not a number.
    """
    if isinstance(value, list | tuple):
        return [plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, dict):
        if MARK in value:
            raise CursorError(f'The cursor cannot be kept: {_at(path)}the key "{MARK}" marks a value of another type.')
        return {key: plain(item, f"{path}.{key}") for key, item in value.items()}
    try:
        marked = _marked(value)
        # In UTC, as a time that a clock shows twice is never equal to that of another zone.
        if marked is None or typed(marked) == in_utc(value):
            return value if marked is None else marked
    except (ArithmeticError, ValueError):
        pass
    raise CursorError(f"The cursor cannot be kept: {_at(path)}{value!r} does not come back as it was.")


def typed(value: object) -> Any:  # noqa: ANN401 - any JSON, and the types above
    """The value that `plain` was given."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, text = value.get(MARK), value.get("v")
    if not isinstance(kind, str) or kind not in _FROM_TEXT or not isinstance(text, str):
        return {key: typed(item) for key, item in value.items()}
    try:
        result = _FROM_TEXT[kind](text)
    except (ArithmeticError, ValueError):
        return value
    return result.replace(fold=1) if isinstance(result, datetime) and value.get("fold") == 1 else result


def _marked(value: object) -> dict[str, object] | None:
    if isinstance(value, UUID):
        return {MARK: "uuid", "v": str(value)}
    if isinstance(value, datetime):
        text = in_utc(value).isoformat(timespec="microseconds")
        # Without a zone, the second of two equal times of a clock that was set back is known by its fold alone.
        fold = {"fold": 1} if value.fold and value.utcoffset() is None else {}
        return {MARK: "datetime", "v": text, **fold}
    if isinstance(value, date):
        return {MARK: "date", "v": value.isoformat()}
    if isinstance(value, Decimal):
        return {MARK: "decimal", "v": str(value)}
    return {MARK: "bytes", "v": b64encode(value).decode()} if isinstance(value, bytes) else None


def in_utc(value: Any) -> Any:  # noqa: ANN401 - any value
    """An aware datetime in UTC; any other value as it is."""
    return value.astimezone(UTC) if isinstance(value, datetime) and value.utcoffset() is not None else value


def _at(path: str) -> str:
    return f"at {path}: " if path else ""
