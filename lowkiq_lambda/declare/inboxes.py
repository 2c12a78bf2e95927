"""Inboxes: queues of SQS whose messages may name any queue of the app, past its mapping functions.

Whether a message comes from one is told by the queue that it lies in. What it says of itself, its sender wrote.
"""

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import NamedTuple

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.incoming import names_of


class DeclaredInbox(NamedTuple):
    """One of them."""

    pattern: str
    """Fits the ARN or the name of the queue."""
    queues: frozenset[str] | None
    """The queues of the app that its messages may name; None is all."""

    def lets_in(self, queue_name: str) -> bool:
        """Whether its messages may name this queue of the app."""
        return self.queues is None or queue_name in self.queues


class Inboxes:
    """Those of one app."""

    def __init__(self) -> None:
        self._declared: list[DeclaredInbox] = []

    def declare(self, pattern: str, queues: Collection[str] | None) -> None:
        """Messages of queues that the pattern fits may name these queues of the app. Raises DeclarationError."""
        if not pattern:
            raise DeclarationError(f"app.inbox takes the ARN or the name of a queue of SQS, not {pattern!r}.")
        if isinstance(queues, str):
            raise DeclarationError(f"The queues of app.inbox are a list of names, not the text {queues!r}.")
        self._declared.append(DeclaredInbox(pattern, None if queues is None else frozenset(queues)))

    def for_queue(self, arn: str, of_stack: str | None) -> DeclaredInbox | None:
        """The first that fits the queue of SQS, else the stack's own, where this is it."""
        for inbox in self._declared:
            if any(fnmatchcase(name, inbox.pattern) for name in names_of(arn)):
                return inbox
        return DeclaredInbox(arn, None) if arn == of_stack else None
