"""Acts on the ids that an operator chooses: by name, by a filter, or all of a list."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import ActionName
from lowkiq_lambda.operate.acts.bulk_actions import count, prepare, steps
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction, Changed
from lowkiq_lambda.operate.acts.forgetting import forget_keys_of
from lowkiq_lambda.operate.inspect.id_filter import ALL, IdFilter, Wanted, filter_by
from lowkiq_lambda.operate.inspect.id_ranges import Bound

_FAILED_LEAST: Final = Bound(0.0)


class Chosen(NamedTuple):
    """The ids of an act. `ids` None: those of the list that the filter wants."""

    ids: Iterable[object] | None
    filter: IdFilter
    everything: bool


def chosen(ids: Iterable[object] | None, filter: Wanted | None, *, everything: bool) -> Chosen:  # noqa: A002 - as an act has it
    """The choice. Raises ValueError unless exactly one of the three is given, and for a bad filter."""
    ways = [
        name
        for name, is_given in (
            ("ids", ids is not None),
            ("a filter", filter is not None),
            ("everything=True", bool(everything)),
        )
        if is_given
    ]
    if len(ways) != 1:
        names = f"{len(ways)} of them: {' and '.join(ways)}" if ways else "none of them"
        raise ValueError(f"Give exactly one of ids, a filter, or everything=True. The call has {names}.")
    return Chosen(ids, ALL if filter is None else filter_by(filter), bool(everything))


def act_on(
    runner: ActionRunner, act: ActionName, choice: Chosen, *, error: bytes = b"", forget_keys: bool = False
) -> Changed:
    """Act; how many ids were changed. Raises JobError for an invalid id, ValueError, BackendError.

    `forget_keys`: all keys of the ids are forgotten after it.
    """
    if forget_keys:
        if choice.ids is None:
            raise ValueError("forget_keys needs ids: forget_all_keys forgets those of the whole queue.")
        ids = [*choice.ids]
        changed = act_on(runner, act, choice._replace(ids=ids), error=error)
        forget_keys_of(runner.reader, ids)
        return changed
    action = prepare(runner, act, chosen_ids=choice.ids, filter=choice.filter, whole_list=choice.everything)
    return carry_on(runner, msgspec.structs.replace(action, error=error))


def carry_on(runner: ActionRunner, action: BulkAction) -> Changed:
    """Carry out an action that nobody was asked about; how many ids were changed. Raises BackendError."""
    # Nobody was asked between the look and the first step, so the look is new enough.
    last = msgspec.structs.replace(action, begun=True)
    try:
        for step in steps(runner, last):
            last = step
    except BackendError as failure:
        failure.add_note(f"{last.changed:,} ids were changed before; call the action again to go on.")
        raise
    return last.result


def deletion(id_filter: IdFilter) -> ActionName:
    """The act that deletes waiting ids that the filter wants."""
    # The script looks again whether such an id has failed: its last run may have ended since the filter saw it.
    wants_failed = bool(id_filter.least_count) and Bound.of(id_filter.least_count) >= _FAILED_LEAST
    return "delete_failed" if wants_failed else "delete"


def count_wanted(runner: ActionRunner, act: ActionName, id_filter: Wanted | None) -> int:
    """How many ids an act would look at with this filter. Raises ValueError for a bad one, BackendError."""
    filter_ = ALL if id_filter is None else filter_by(id_filter)
    action: BulkAction = prepare(runner, act, filter=filter_, whole_list=True)
    return count(runner, action, lambda: True)[0]
