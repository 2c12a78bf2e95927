"""An action between two requests: the page that shows how far it is keeps all of it, and the server nothing.

So it goes on wherever the next request arrives, and an action that nobody goes on with is over. Nothing of it is
signed: who may send a ticket may do all that it could say, and each of its fields is checked. An address, which others
can send somebody to, holds no ticket: only the question, which is answered by a look, or the outcome, which is told.
"""

import base64
import binascii
import secrets
import zlib
from typing import Final, TypeVar

import msgspec

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.criteria import criteria, told
from lowkiq_lambda.store.inspect.actions import ActionName
from lowkiq_lambda.store.inspect.bulk_actions import BulkAction, Count

_LARGEST = 8 * 1024 * 1024
LONGEST_ADDRESS: Final = 3_500
"""Characters of a question in an address: API Gateway takes 10,240 of all headers, which name two addresses more."""

Kept = TypeVar("Kept", bound=msgspec.Struct)


def _new_run() -> str:
    return secrets.token_hex(4)


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What somebody wants to do, to the ids that were `chosen`, or, where that is None, to what the list `back` shows.

    `changed`: how many ids it has changed already, where it is asked for again to go on. `run` is as in a ticket.
    """

    queue: str
    act: ActionName
    back: dict[str, str] = {}
    chosen: list[str] | None = None
    is_lost: bool = False
    """Whether ids were chosen that were too many for an address."""
    changed: Count = 0
    run: str = msgspec.field(default_factory=_new_run)

    @property
    def without_chosen(self) -> "Question":
        """What is left of it where an address cannot hold it."""
        return msgspec.structs.replace(self, chosen=[], is_lost=True)


class Ticket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sweep through a queue, and the fields of the list that it began at. `run`: what its lines in the log share.

    `before`: how many ids were changed before it was asked for again.
    """

    queue: str
    sweep: BulkAction
    back: dict[str, str] = {}
    run: str = msgspec.field(default_factory=_new_run)
    before: Count = 0

    @property
    def changed(self) -> int:
        """How many ids it has changed, in all."""
        return self.before + self.sweep.changed

    @property
    def question(self) -> Question:
        """What asks for the rest of it."""
        chosen = self.sweep.chosen
        return Question(
            queue=self.queue, act=self.sweep.act, back=self.back, chosen=chosen, changed=self.changed, run=self.run
        )

    @property
    def what(self) -> str:
        """What it is done to, for the log."""
        sweep = self.sweep
        if sweep.chosen is not None:
            return audit.selected(sweep.chosen)
        found_by = criteria(sweep.filter, sweep.act)
        return f"found by: {told(found_by)}" if found_by else "all"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What became of an action: how many ids it changed, and how many of those that were chosen it `left` alone."""

    queue: str
    act: ActionName
    back: dict[str, str] = {}
    changed: Count = 0
    left: Count = 0
    is_short: bool = False
    """Whether less was changed than was to be expected."""


def packed(kept: msgspec.Struct) -> str:
    """It as a field of a form or an address."""
    return base64.urlsafe_b64encode(zlib.compress(msgspec.msgpack.encode(kept), 6)).decode()


def unpacked(text: str, kind: type[Kept]) -> Kept:
    """What was packed. Raises ValueError for any other text."""
    try:
        unzip = zlib.decompressobj()
        data = unzip.decompress(base64.b64decode(text, altchars=b"-_", validate=True), _LARGEST)
        return msgspec.msgpack.decode(data, type=kind)
    except (binascii.Error, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError("That is nothing that was packed here.") from error


def address_of(question: Question) -> str | None:
    """The question as an address has it; None where it would be too long for one."""
    text = packed(question)
    return text if len(text) <= LONGEST_ADDRESS else None
