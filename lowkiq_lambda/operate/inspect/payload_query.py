"""A search in payloads: which conditions its text sets, and which payloads meet them."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from lowkiq_lambda.base.error_text import call_safely

MOST_TERMS: Final = 8
MOST_CHARACTERS: Final = 500
ANY_ITEM: Final = "[]"
"""A step of a path that goes to each item of a list."""

_TERM: Final = re.compile(
    r"(?P<not>-?)"
    r"(?:(?P<path>[^\s:<>\"]+)(?P<sign>:|>=|<=|>|<)(?P<value>\"(?:[^\"\\]|\\.)*\"|[^\s\"]+)"
    r"|(?P<quoted>\"(?:[^\"\\]|\\.)*\")|(?P<word>[^\s\":<>]+))(?=\s|$)"
)
_SPACE: Final = re.compile(r"\s*")
_SAFE: Final = re.compile(rb"[0-9A-Za-z_. -]+")
"""Bytes that encoders of JSON write as they are."""
_WORD: Final = re.compile(rb"[A-Za-z_]{2,}")

_encode: Final = msgspec.json.Encoder(enc_hook=repr, order="sorted").encode

_COMPARES: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}


class Term(NamedTuple):
    """One condition. Without a path it is a text that the payload's JSON contains, in any case of the letters."""

    negated: bool
    path: tuple[str, ...]
    sign: str
    value: str
    quoted: bool

    def matches(self, payload: object) -> bool:
        """Whether the payload meets it."""
        if not self.path:
            return (self.value.casefold() in _canonical(payload).casefold()) != self.negated
        return any(map(self._fits, _values_at(payload, self.path))) != self.negated

    def literal(self) -> bytes:
        """The longest bytes, lower case, that the JSON of a payload that meets it surely has; b"" if none are sure."""
        if self.negated:
            return b""
        texts = [self.value] if not self.path else [step for step in self.path if not _is_position(step)]
        if self.path and self.sign == ":" and self.value != "*" and (self.quoted or _scalar(self.value) is _NO_SCALAR):
            texts.append(self.value)
        # Without a path it is looked for in canonical JSON, which has other spaces than the bytes, and other numbers.
        safe = _SAFE if self.path else _WORD
        return max((piece for text in texts for piece in safe.findall(text.encode())), key=len, default=b"").lower()

    def _fits(self, value: object) -> bool:
        if self.sign == ":":
            return (self.value == "*" and not self.quoted) or _equals(value, self.value, quoted=self.quoted)
        number = _number(self.value)
        if number is None or isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return _COMPARES[self.sign](value, number)


class PayloadQuery(NamedTuple):
    """Conditions on one payload, which all have to hold."""

    terms: tuple[Term, ...]

    def matches(self, payload: object) -> bool:
        """Whether the payload meets them all."""
        return all(term.matches(payload) for term in self.terms)

    @property
    def literal(self) -> bytes:
        """Bytes, lower case, that a payload surely has which meets them: a server leaves out all others unread."""
        return max((term.literal() for term in self.terms), key=len, default=b"")


def payload_query(text: str) -> PayloadQuery:
    r"""The conditions of a text such as `customer.id:17 status:"to pay" -total>100 overdue`.

    `path:value` (17 is a number or a text; "17" is a text alone), `path:*` (there is such a value), `path>5` and the
    other three comparisons of numbers, a word or a quoted text that the JSON contains, and `-` before a term for its
    contrary. A path goes through fields and positions: `lines.0.sku`; `lines[].sku` is that of any item. AND may stand
    between terms. Raises ValueError, with the position, for anything else.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"A payload search has at most {MOST_CHARACTERS} characters, not {len(text)}.")
    terms = tuple([_term(match, match.start()) for match in _matches(text)])
    if not 1 <= len(terms) <= MOST_TERMS:
        raise ValueError(f"A payload search has 1 to {MOST_TERMS} terms, not {len(terms)}.")
    return PayloadQuery(terms)


def without_values(text: str, mask: object) -> str:
    """A search that can be read, for the activity log: with a mask its paths alone, as values tell what it hides."""
    if mask is None:
        return text
    return " ".join(f"{match['not']}{match['path'] or ''}{match['sign'] or ''}…" for match in _matches(text))


def _matches(text: str) -> Iterator[re.Match[str]]:
    at, is_first = _skipped(text, 0), True
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            raise ValueError(f"The payload search cannot be read from character {at + 1} on: {text[at : at + 20]!r}.")
        # AND joins two terms; the word itself is looked for as "AND".
        if match[0] != "AND" or is_first:
            yield match
        at, is_first = _skipped(text, match.end()), False


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _term(match: re.Match[str], at: int) -> Term:
    negated = bool(match["not"])
    if match["path"] is None:
        quoted = match["quoted"]
        return Term(negated, (), "", match["word"] if quoted is None else _unquoted(quoted, at), quoted is not None)
    path = tuple(step for part in match["path"].split(".") for step in _steps(part))
    if not all(path):
        raise ValueError(f"The path at character {at + 1} has an empty step: {match['path']!r}.")
    value, sign = match["value"], match["sign"]
    if value.startswith('"'):
        value, quoted = _unquoted(value, at), True
    else:
        quoted = False
    if sign != ":" and (quoted or _number(value) is None):
        raise ValueError(f"{match['path']}{sign} at character {at + 1} compares numbers, and {value!r} is not one.")
    return Term(negated, path, sign, value, quoted)


def _steps(part: str) -> Iterator[str]:
    """`lines[]` is two steps."""
    items = 0
    while part.endswith(ANY_ITEM):
        part, items = part.removesuffix(ANY_ITEM), items + 1
    if part or not items:
        yield part
    yield from [ANY_ITEM] * items


def _unquoted(text: str, at: int) -> str:
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        raise ValueError(f"The quoted text at character {at + 1} is not a JSON text: {text}.") from None


def _is_position(step: str) -> bool:
    return step == ANY_ITEM or step.isdecimal()


def _values_at(payload: object, path: Sequence[str]) -> Iterator[object]:
    if not path:
        yield payload
        return
    step, rest = path[0], path[1:]
    if isinstance(payload, dict) and step in payload:
        yield from _values_at(payload[step], rest)
    elif isinstance(payload, list) and step == ANY_ITEM:
        for item in payload:
            yield from _values_at(item, rest)
    elif isinstance(payload, list) and step.isdecimal() and step.isascii() and int(step) < len(payload):
        yield from _values_at(payload[int(step)], rest)


_NO_SCALAR: Final = object()


def _scalar(text: str) -> object:
    """A number, true, false or null as JSON writes it."""
    literal = {"true": True, "false": False, "null": None}
    if text in literal:
        return literal[text]
    number = _number(text)
    return _NO_SCALAR if number is None else number


def _number(text: str) -> float | int | None:
    if not re.fullmatch(r"-?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?", text, re.ASCII):
        return None
    return float(text) if re.search(r"[.eE]", text) else int(text)


def _equals(value: object, text: str, *, quoted: bool) -> bool:
    if isinstance(value, str):
        return value == text
    scalar = _NO_SCALAR if quoted else _scalar(text)
    # In Python True == 1, and in JSON it is not.
    return scalar is not _NO_SCALAR and isinstance(value, bool) == isinstance(scalar, bool) and value == scalar


def _canonical(payload: object) -> str:
    # An app's codec may give any object, and one that has no JSON hides no other.
    encoded, _ = call_safely(_encode, payload)
    return str(call_safely(repr, payload)[0]) if encoded is None else encoded.decode(errors="replace")
