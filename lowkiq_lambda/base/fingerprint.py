"""The fingerprint of errors that are alike: their type, and their message without the values that differ."""

import re
from hashlib import blake2b
from typing import Final, NamedTuple

LINE: Final = 300
"""Characters of a first line."""
_TYPE: Final = re.compile(r"[A-Za-z_][\w.]*(?=:(?!//)|$)", re.ASCII)
_VALUE: Final = re.compile(
    # No part can match one text in two ways, so a line takes time by its length alone.
    r"(?<![0-9a-z])(?:"
    r"(?P<origin>[a-z][a-z0-9+.-]{0,30}://)(?:[^\s/'\"`]*@)?(?P<host>[^\s/?#'\"`@]*)(?P<path>[^\s'\"`]*)"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])"
    r"|0x[0-9a-f]+(?![0-9a-z])"
    r"|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9a-z])"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![0-9a-z])"
    r"|(?:(?<![^\s(\[{=,:])-)?[0-9]+(?:[.,][0-9]+)*"
    r"|(?P<quoted>'[^']*'|\"[^\"]*\"|`[^`]*`))",
    re.ASCII | re.IGNORECASE,
)
_NAME: Final = re.compile(r".[a-z_.]{1,40}.", re.ASCII)
"""In quotation marks, the name of a key, a column or a constraint, and not a value."""
_STATUS: Final = re.compile(r"[1-5][0-9]{2}", re.ASCII)
_BEFORE_STATUS: Final = re.compile(
    r"(?:\A|HTTP(?:/\S{1,8})?|status(?:[ _-]?code)?|Error)[ :=(]{0,4}\Z", re.ASCII | re.IGNORECASE
)
"""Statuses of HTTP stand first in a message, or behind such a word: they are errors of different kinds."""
_LONGEST_BEFORE: Final = 24


class Fingerprint(NamedTuple):
    """Of an error: what those that are alike share, in words, and 16 hex digits of that."""

    words: str
    digits: str


def fingerprint(text: str) -> Fingerprint:
    """The fingerprint of an error's text, by its first line: numbers, hex, dates, quoted values and paths become `#`.

    A status of HTTP stays, and so does a quoted name in small letters.

    >>> fingerprint("HTTPError: 429 Too Many Requests for url https://u:pw@api.x.com/v1/labels/8812?a=1").words
    'HTTPError: 429 Too Many Requests for url https://api.x.com/#'
    >>> fingerprint("ValueError: order 345 has 12 lines").words, fingerprint("KeyError: 'SKU-17'").words
    ('ValueError: order # has # lines', "KeyError: '#'")
    >>> fingerprint("KeyError: 'amount_cents'")
    Fingerprint(words="KeyError: 'amount_cents'", digits='...')
    """
    words, line = first_line(text), ""
    while words != line:
        # The text beside a value may be one itself. Each round but the last takes characters away, or marks.
        line, words = words, _without_values(words)
    return Fingerprint(words, blake2b(words.encode(errors="backslashreplace"), digest_size=8).hexdigest())


def first_line(text: str) -> str:
    r"""The first line of an error's text, or its beginning.

    >>> first_line("shop.Late: no parcel\n  File ...")
    'shop.Late: no parcel'
    """
    return text.lstrip("\n").split("\n", 1)[0][:LINE].rstrip("\r")


def type_of(line: str) -> str:
    """The type of an exception that the line begins with, or "" for any other text.

    >>> type_of("shop.Late: no parcel"), type_of("no parcel")
    ('shop.Late', '')
    """
    match = _TYPE.match(line)
    return match[0] if match else ""


def _without_values(line: str) -> str:
    begins = len(type_of(line))
    return line[:begins] + _VALUE.sub(_alike, line[begins:])


def _alike(match: re.Match[str]) -> str:
    """The replacement of a value: with at most as many characters, and fewer that are not `#`."""
    if path := match["path"]:
        return match["origin"] + match["host"] + (path[0] + "#" if len(path) > 1 else path)
    if match["origin"]:
        return match["origin"] + match["host"]
    if match["quoted"]:
        return match[0] if _NAME.fullmatch(match[0]) or len(match[0]) == len("''") else "'#'"
    before = match.string[max(0, match.start() - _LONGEST_BEFORE) : match.start()]
    return match[0] if _STATUS.fullmatch(match[0]) and _BEFORE_STATUS.search(before) else "#"
