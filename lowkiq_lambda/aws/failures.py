"""Which records of an event are to come again."""

import logging
from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.aws.sources import Record
from lowkiq_lambda.base.error_text import loggable

logger = logging.getLogger(__name__)

_LOGGED: Final = 10
"""How many failures of one event are logged one by one: a server that is away fails all of them."""


class Failures:
    """The records that failed, and those that must not overtake them."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self._errors: dict[int, Exception] = {}
        self._first_of_group: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._errors)

    def __contains__(self, position: int) -> bool:
        group = self._records[position].group
        is_behind = group is not None and self._first_of_group.get(group, position) < position
        return is_behind or position in self._errors

    def add(self, position: int, error: Exception) -> None:
        """The record failed: it comes again, with all that is behind it in its group."""
        self._errors.setdefault(position, error)
        group = self._records[position].group
        if group is not None:
            self._first_of_group[group] = min(position, self._first_of_group.get(group, position))

    @property
    def identifiers(self) -> list[str]:
        """Of all records that are to come again, in their order."""
        return [record.identifier for position, record in enumerate(self._records) if position in self]

    @property
    def first(self) -> Exception:
        """What went wrong with the first record that failed."""
        return self._errors[min(self._errors)]

    def log(self) -> None:
        """Say what went wrong with the first of them, and how many there are."""
        for position in sorted(self._errors)[:_LOGGED]:
            error = loggable(self._errors[position])
            logger.error("a record failed", extra={"record": self._records[position].identifier}, exc_info=error)
        if self:
            logger.warning("%d of %d records are to come again", len(self.identifiers), len(self._records))
