"""The state of a bulk action between two requests. The browser keeps it, the server keeps nothing.

So any process can serve the next step, and an action ends if the browser leaves. The state is unsigned on purpose: its
sender is already allowed to do everything that it can express, and each field is validated. An address, which an
attacker can send to an operator, never holds a state: only a request, which asks for a confirmation, or a result.
"""

import base64
import binascii
import secrets
import zlib
from typing import Final, TypeVar

import msgspec

from lowkiq_lambda.dashboard.criteria import criteria, description
from lowkiq_lambda.presentation.formatting import selected
from lowkiq_lambda.store.inspect.action_scripts import ActionName
from lowkiq_lambda.store.inspect.bulk_actions import BulkAction, Count

_LARGEST = 8 * 1024 * 1024
LONGEST_ADDRESS: Final = 3_500
"""Characters of a packed request in an address. API Gateway allows 10,240 for all headers, which have two more."""

Packed = TypeVar("Packed", bound=msgspec.Struct)


def _new_run() -> str:
    return secrets.token_hex(4)


class BulkActionRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An action on the ids in `chosen`, or, if that is None, on all jobs of the list with the fields `back`.

    `changed`: the ids that earlier steps changed, if the action is resumed. `run` is as in `BulkActionState`.
    """

    queue: str
    act: ActionName
    back: dict[str, str] = {}
    chosen: list[str] | None = None
    is_lost: bool = False
    """Whether the selected ids were too long for an address."""
    changed: Count = 0
    run: str = msgspec.field(default_factory=_new_run)

    @property
    def without_chosen(self) -> "BulkActionRequest":
        """The request without its ids, if they are too long for an address."""
        return msgspec.structs.replace(self, chosen=[], is_lost=True)


class BulkActionState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bulk action in progress. `back`: the fields of its list. `run`: an id that its lines in the log share.

    `before`: the ids that were changed before the action was resumed.
    """

    queue: str
    action: BulkAction
    back: dict[str, str] = {}
    run: str = msgspec.field(default_factory=_new_run)
    before: Count = 0

    @property
    def changed(self) -> int:
        """All ids changed so far."""
        return self.before + self.action.changed

    @property
    def request(self) -> BulkActionRequest:
        """A request for the rest of the action."""
        chosen = self.action.chosen
        return BulkActionRequest(
            queue=self.queue, act=self.action.act, back=self.back, chosen=chosen, changed=self.changed, run=self.run
        )

    @property
    def target(self) -> str:
        """The target of the action, for the log."""
        action = self.action
        if action.chosen is not None:
            return selected(action.chosen)
        conditions = criteria(action.filter, action.act)
        return f"found by: {description(conditions)}" if conditions else "all"


class BulkActionResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The result of an action. `left`: the selected ids that it did not change."""

    queue: str
    act: ActionName
    back: dict[str, str] = {}
    changed: Count = 0
    left: Count = 0
    is_short: bool = False
    """Whether the action changed fewer ids than expected."""


def pack(value: msgspec.Struct) -> str:
    """The value as a text for a form or an address."""
    return base64.urlsafe_b64encode(zlib.compress(msgspec.msgpack.encode(value), 6)).decode()


def unpack(text: str, kind: type[Packed]) -> Packed:
    """The inverse of `pack`. Raises ValueError for any other text."""
    try:
        unzip = zlib.decompressobj()
        data = unzip.decompress(base64.b64decode(text, altchars=b"-_", validate=True), _LARGEST)
        return msgspec.msgpack.decode(data, type=kind)
    except (binascii.Error, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError("The text is damaged.") from error


def address_of(request: BulkActionRequest) -> str | None:
    """The packed request for an address; None if it is too long."""
    text = pack(request)
    return text if len(text) <= LONGEST_ADDRESS else None
