"""The target of a package: the runtime's Python and its processor."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from lowkiq_lambda.base.errors import LowkiqError

_MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
_OLDEST_GLIBC: Final = 17
# Amazon Linux 2 below Python 3.11 and with it, Amazon Linux 2023 from 3.12 on.
_GLIBC_BEFORE_3_12: Final = 26
_GLIBC: Final = 34


class BuildFailed(LowkiqError):
    """The package cannot be built."""


class BuildTarget(NamedTuple):
    """A runtime and an architecture."""

    minor: int
    """Of the runtime's Python: 13 for python3.13."""
    architecture: str

    @classmethod
    def named(cls, text: str) -> BuildTarget:
        """Reads `python3.13-arm64`. Raises BuildFailed."""
        match = re.fullmatch(r"python3\.(\d+)-(arm64|x86_64)", text)
        if match is None:
            raise BuildFailed(f"{text!r} names no runtime and architecture: expected one like python3.13-arm64.")
        return cls(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"python{self.version}-{self.architecture}"

    @property
    def version(self) -> str:
        """As pip has it."""
        return f"3.{self.minor}"

    @property
    def platforms(self) -> list[str]:
        """The platforms whose wheels run there, newest first."""
        newest = _GLIBC if self.minor >= 12 else _GLIBC_BEFORE_3_12  # noqa: PLR2004 - the runtime that changed systems
        tags = [f"manylinux_2_{minor}" for minor in range(newest, _OLDEST_GLIBC - 1, -1)]
        return [f"{tag}_{_MACHINES[self.architecture]}" for tag in (*tags, "manylinux2014")]
