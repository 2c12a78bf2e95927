"""A bulk action: its steps within one request, and its state between two, which the browser keeps.

The server keeps the key that signs it. So any process can serve the next step, and an action ends if the browser
leaves. It is signed because it is evidence: how many ids an action has changed, and which lines of the activity log
belong together. An address never holds a state: only a request, which asks for a confirmation, or a result.
"""

import zlib
from collections.abc import Callable
from typing import Annotated, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.criteria import criteria, description
from lowkiq_lambda.dashboard.security.sessions import sign, verified
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import ActionName
from lowkiq_lambda.operate.acts.bulk_actions import steps
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction, Count, new_action_id
from lowkiq_lambda.operate.acts.requeue_terms import Rate, RequeueOrder
from lowkiq_lambda.operate.inspect.activity import signing_key
from lowkiq_lambda.operate.presentation.formatting import selected
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.views.activity import Reason

LONGEST_ADDRESS: Final = 3_500
"""Characters of a packed request in an address. API Gateway allows 10,240 for all headers, which have two more."""

ActionId: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
Packed = TypeVar("Packed", bound=msgspec.Struct)

LARGEST_STATE: Final = 512 * 1024
"""Characters of a packed state; a request body may have twice as many."""
_RETRY_FOR: Final = 2.0


class RequeuePace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """In which order ids come back, and how many in a second; None: all at once.

    `not_before`: when the first is due at the earliest (Unix seconds), if earlier steps gave later times to others.
    """

    order: RequeueOrder = "score"
    rate: Rate | None = None
    not_before: float = 0.0


class BulkActionRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An action on the ids in `chosen`, or, if that is None, on all jobs of the list with the fields `back`.

    `changed`: the ids that earlier steps changed, if the action is resumed. `action_id` is as in `BulkActionState`.
    """

    queue: str
    act: ActionName
    back: dict[str, str] = {}
    chosen: list[str] | None = None
    is_lost: bool = False
    """Whether the selected ids were too long for an address."""
    changed: Count = 0
    action_id: ActionId = msgspec.field(default_factory=new_action_id)
    reason: Reason = ""
    pace: RequeuePace = msgspec.field(default_factory=RequeuePace)
    is_dry_run: bool = False
    """Whether the confirmation shows what would become of the first ids."""

    @property
    def without_chosen(self) -> "BulkActionRequest":
        """The request without its ids, if they are too long for an address."""
        return msgspec.structs.replace(self, chosen=[], is_lost=True)


class BulkActionState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bulk action in progress. `back`: the fields of its list. `action_id`: an id that its lines in the log share.

    `before`: the ids that were changed before the action was resumed. `is_large`: the operator has to type the name of
    the queue before it begins. `reason`: in the operator's words, for the log.
    """

    queue: str
    action: BulkAction
    back: dict[str, str] = {}
    action_id: ActionId = msgspec.field(default_factory=new_action_id)
    before: Count = 0
    is_large: bool = False
    lacks_reason: str = ""
    """Why it has to have a reason before it begins; empty if it need not."""
    reason: Reason = ""
    pace: RequeuePace = msgspec.field(default_factory=RequeuePace)

    def __post_init__(self) -> None:
        # An undo takes back one action, by the id that its lines have.
        if self.action.action_id not in {"", self.action_id}:
            action = msgspec.structs.replace(self.action, action_id=self.action_id)
            msgspec.structs.force_setattr(self, "action", action)

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
            action_id=self.action_id,
            reason=self.reason,
            pace=self._pace_of_rest,
        )

    @property
    def _pace_of_rest(self) -> RequeuePace:
        terms = self.action.terms
        if terms is None:
            return self.pace
        return RequeuePace(order=terms.order, rate=terms.rate, not_before=terms.due_at(self.action.turns))

    def target(self, mask: Mask | None) -> str:
        """The target of the action, for the log."""
        action = self.action
        if action.chosen is not None:
            return selected(action.chosen)
        conditions = criteria(action.filter, action.act, mask=mask)
        return f"found by: {description(conditions)}" if conditions else "all"


class BulkActionResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The result of an action. `left`: the selected ids that it did not change. `running`: how many of them run now."""

    queue: str
    act: ActionName
    back: dict[str, str] = {}
    changed: Count = 0
    left: Count = 0
    running: Count = 0
    action_id: str = ""
    """By which it can be undone, if `undoable` of its ids can be."""
    undoable: Count = 0
    paused: Count = 0
    """Ids that it did not change, as they are paused."""
    last_due: float | None = None
    """With a rate: by when the last of them is due."""
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
        # A text that another version signed may have other fields.
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


class StepProgress(NamedTuple):
    """The state after the steps. `failure`: the error of Redis that stopped them, or None."""

    state: BulkActionState
    failure: BackendError | None


def key_of(context: RequestContext) -> bytes:
    """What signs the states of actions. Raises BackendError."""
    return signing_key(context.app.core.backend, min(_RETRY_FOR, context.app.config.redis_retry_for))


def run_steps(
    context: RequestContext, runner: ActionRunner, state: BulkActionState, is_enough: Callable[[BulkAction], bool]
) -> StepProgress:
    """Runs steps until `is_enough`, and logs the changes of this request, as there may be no further one.

    Raises ValueError if the queue has other shards by now, or the state is invalid.
    """
    before = after = state.action
    failure: BackendError | None = None
    try:
        for after in steps(runner, before):
            # If pending long ids make the state too large, finish them before returning.
            if is_enough(after) and packed_size(msgspec.structs.replace(state, action=after)) <= LARGEST_STATE:
                break
    except BackendError as error:
        failure = error
    finally:
        _note(context, state, after, failure)
    return StepProgress(msgspec.structs.replace(state, action=after), failure)


def _note(context: RequestContext, state: BulkActionState, after: BulkAction, failure: BackendError | None) -> None:
    changed = after.changed - state.action.changed
    status = "done" if after.is_done else "failed" if failure else "in progress"
    if changed or failure or after.is_done:
        activity.note(
            context,
            after.act,
            state.queue,
            state.target(context.mask),
            changed,
            state=status,
            in_all=state.before + after.changed,
            action_id=state.action_id,
            reason=state.reason or context.reason,
        )
