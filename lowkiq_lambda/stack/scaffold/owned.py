"""Files of a project that belong to lowkiq_lambda: a header says so, and tells whether somebody has edited them."""

import re
from hashlib import sha256
from importlib.metadata import version
from typing import Final, NamedTuple

_HEADER: Final = """\
# Do not edit: this file belongs to lowkiq_lambda, and `lowkiq upgrade` replaces it.
# lowkiq_lambda {version}, sha256 {digest}
"""
_SIGNED: Final = re.compile(
    r"\A# Do not edit[^\n]*\n# lowkiq_lambda \S+, sha256 (?P<digest>[0-9a-f]{64})\n(?P<body>.*)\Z", re.DOTALL
)


class Signature(NamedTuple):
    """What the header of a file says, and what is below it."""

    digest: str
    body: str

    @property
    def is_untouched(self) -> bool:
        """Whether the file is as it was written."""
        return self.digest == _digest(self.body)


def sign(body: str) -> str:
    """The text of an owned file: a header, and the body as it is."""
    return _HEADER.format(version=own_version(), digest=_digest(body)) + body


def signature(text: str) -> Signature | None:
    """The header of a file; None if it has none."""
    found = _SIGNED.match(text)
    return found and Signature(found["digest"], found["body"])


def own_version() -> str:
    """The version of the library that is installed."""
    return version("lowkiq-lambda")


def _digest(body: str) -> str:
    return sha256(body.encode()).hexdigest()
