"""How ids come back, as a form says it, and what would become of them."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from lowkiq_lambda.dashboard.bulk_action import RequeuePace
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.security.forms import Form
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import ActionName
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
from lowkiq_lambda.operate.acts.requeue_terms import RequeueOrder
from lowkiq_lambda.operate.acts.requeueing import previews, timed
from lowkiq_lambda.operate.presentation.requeue_words import preview_total, preview_words

ORDER_WORDS: Final[Mapping[RequeueOrder, str]] = {
    "score": "each payload where its score belongs",
    "unless_newer": "the same, but a payload stays where a newer one of its id waits or runs",
    "last": "behind all payloads of its id",
}
PACED: Final[frozenset[ActionName]] = frozenset({"requeue", "run_now"})
"""The actions that may have a rate."""
_BAD_RATE: Final = "Nothing was changed. Give a number of ids a second above 0, at most 1,000,000, or leave it empty."


class DryRun(NamedTuple):
    """The effect on ids: an id and a sentence each, and one for all of them."""

    lines: Sequence[tuple[str, str]]
    total: str


def pace_of(form: Form, before: RequeuePace) -> RequeuePace:
    """The order and rate of a form, and those from before where it has no such fields. Raises ValueError."""
    if "rate" not in form:
        return before
    rate = form.get("rate", "").strip()
    try:
        values = {"order": form.get("order", before.order), "rate": float(rate) if rate else None}
        return msgspec.convert({**values, "not_before": before.not_before}, RequeuePace)
    except msgspec.ValidationError as error:
        raise ValueError("The dashboard knows no such order." if "order" in str(error) else _BAD_RATE) from error
    except ValueError as error:
        raise ValueError(_BAD_RATE) from error


def with_pace(runner: ActionRunner, action: BulkAction, pace: RequeuePace) -> BulkAction:
    """The action on these terms, if they differ from those without any. Raises ValueError, BackendError."""
    if action.act not in PACED or pace == RequeuePace():
        return action
    now = runner.reader.backend.now(runner.reader.shards[0])
    start = pace.not_before if pace.not_before > now else None
    return timed(runner, action, {"order": pace.order, "rate": pace.rate, "start": start})


def dry_run(runner: ActionRunner, action: BulkAction, ids: list[str], longest: int) -> DryRun:
    """The effect on these ids, the first of the action. Raises ValueError, BackendError."""
    first = msgspec.structs.replace(action, chosen=ids)
    if first.terms is None:
        first = timed(runner, first, {})
    results = [*islice(previews(runner, first), len(ids))]
    again = sum(not preview.skipped for preview in results)
    lines = [(shown_id(preview.id, longest), preview_words(preview)) for preview in results]
    return DryRun(lines, preview_total(again, len(results) - again))
