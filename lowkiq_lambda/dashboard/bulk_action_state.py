"""The state of a bulk action between two requests. The browser keeps it, the server keeps the key that signs it.

So any process can serve the next step, and an action ends if the browser leaves. It is signed because it is evidence:
how many ids an action has changed, and which lines of the audit log belong together. An address never holds a state:
only a request, which asks for a confirmation, or a result.
"""

import secrets
import zlib
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

from lowkiq_lambda.dashboard.criteria import criteria, description
from lowkiq_lambda.dashboard.security.signing import sign, verified
from lowkiq_lambda.operate.inspect.action_scripts import ActionName
from lowkiq_lambda.operate.inspect.bulk_actions import BulkAction, Count
from lowkiq_lambda.operate.presentation.formatting import selected

LONGEST_ADDRESS: Final = 3_500
"""Characters of a packed request in an address. API Gateway allows 10,240 for all headers, which have two more."""

LONGEST_REASON: Final = 200
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=LONGEST_REASON)]
Run: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8}\Z")]
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
    run: Run = msgspec.field(default_factory=_new_run)
    reason: Reason = ""

    @property
    def without_chosen(self) -> "BulkActionRequest":
        """The request without its ids, if they are too long for an address."""
        return msgspec.structs.replace(self, chosen=[], is_lost=True)


class BulkActionState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bulk action in progress. `back`: the fields of its list. `run`: an id that its lines in the log share.

    `before`: the ids that were changed before the action was resumed. `is_large`: the operator has to type the name of
    the queue before it begins. `reason`: in the operator's words, for the log.
    """

    queue: str
    action: BulkAction
    back: dict[str, str] = {}
    run: Run = msgspec.field(default_factory=_new_run)
    before: Count = 0
    is_large: bool = False
    reason: Reason = ""

    @property
    def changed(self) -> int:
        """All ids changed so far."""
        return self.before + self.action.changed

    @property
    def request(self) -> BulkActionRequest:
        """A request for the rest of the action."""
        return BulkActionRequest(
            queue=self.queue,
            act=self.action.act,
            back=self.back,
            chosen=self.action.chosen,
            changed=self.changed,
            run=self.run,
            reason=self.reason,
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
    """The result of an action. `left`: the selected ids that it did not change. `running`: how many of them run now."""

    queue: str
    act: ActionName
    back: dict[str, str] = {}
    changed: Count = 0
    left: Count = 0
    running: Count = 0
    is_short: bool = False
    """Whether the action changed fewer ids than expected."""


def pack(key: bytes, value: msgspec.Struct) -> str:
    """The value as a text for a form or an address, signed by the key."""
    return sign(key, type(value).__name__, _compressed(value))


def unpack(key: bytes, text: str, kind: type[Packed]) -> Packed:
    """The inverse of `pack`. Raises ValueError for any text that this key has not signed for this kind of value."""
    data = verified(key, kind.__name__, text)
    try:
        return msgspec.msgpack.decode(zlib.decompress(data or b""), type=kind)
    except (zlib.error, msgspec.DecodeError) as error:
        # What another version has signed may have other fields.
        raise ValueError("The text is damaged.") from error


def packed_size(value: msgspec.Struct) -> int:
    """About how many characters it has, packed."""
    return len(_compressed(value)) * 4 // 3


def address_of(key: bytes, request: BulkActionRequest) -> str | None:
    """The packed request for an address; None if it is too long."""
    text = pack(key, request)
    return text if len(text) <= LONGEST_ADDRESS else None


def _compressed(value: msgspec.Struct) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(value), 6)
