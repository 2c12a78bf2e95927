"""`lowkiq run-now`, `kill`, `unblock` and `delete`: changes of jobs, each after a question."""

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.changing import All, Choice, DryRun, Id, JobChange, Json, change, change_app, dry_run
from lowkiq_lambda.cli.filters import FILTERS, ErrorOption, FilterOption, PayloadOption, conditions, id_filter_of
from lowkiq_lambda.cli.parts import Reason, Yes, flag
from lowkiq_lambda.cli.queues import AppOption, QueueName, app_of, queue_of

RUN_NOW: Final = JobChange("run_now", "Make due now", "waiting for a later time in", "made due")
KILL: Final = JobChange("kill", "Send to the morgue", "waiting after a failure in", "killed")
UNBLOCK: Final = JobChange("unblock", "Unblock", "waiting behind a dead head in", "unblocked")
UNBLOCK_SKIPPING: Final = UNBLOCK._replace(act="unblock_skipping", asked="Skip the oldest payload of")
DELETE: Final = JobChange("delete", "Delete for good", "waiting in", "deleted")
DELETE_DEAD: Final = JobChange("delete_dead", "Delete for good", "in the morgue of", "deleted")

run_now: Final = change_app(
    "run-now",
    "Make jobs of QUEUE that wait for a later time due now, in their order: retries, and delayed jobs.\n",
    """  A job that would be retried in an hour:
    lowkiq run-now SyncOrder 17
  All whose last error was a timeout, in a script:
    lowkiq run-now SyncOrder --error timeout --yes
""",
    more=FILTERS,
)
kill: Final = change_app(
    "kill",
    "Send jobs of QUEUE that wait for a retry to the morgue, the list of dead jobs, with their last error.\n",
    """  A job that no retry will mend:
    lowkiq kill SyncOrder 17
  How many have failed at least five times, and which:
    lowkiq kill SyncOrder --filter least_count=4 --dry-run
""",
    more=FILTERS,
)
unblock: Final = change_app(
    "unblock",
    "Let blocked jobs of QUEUE go on: their oldest payload is tried as if it had never failed.\n",
    """  All that are blocked, once the cause is corrected:
    lowkiq unblock SyncOrder --all
  One whose oldest payload is to be left out:
    lowkiq unblock SyncOrder 17 --skip
""",
    more=FILTERS,
)
delete: Final = change_app(
    "delete",
    "Delete what waits in QUEUE; with --morgue what lies in its morgue.\n",
    """  The jobs of an id that begins with a hyphen:
    lowkiq delete SyncOrder -- -17
  All jobs of the morgue, in a script:
    lowkiq delete SyncOrder --morgue --all --yes
  Those whose ids begin with "test-", with a word for the activity:
    lowkiq delete SyncOrder --filter prefix=test- --reason "left by a test"
""",
    more=FILTERS,
)


class _Which(NamedTuple):
    """The jobs that a command names: by their ids, by the conditions of a search, or all."""

    ids: Sequence[str]
    search: Sequence[str]
    every: bool


class _How(NamedTuple):
    """The other options of the commands."""

    app: str | None
    reason: str | None
    dry_run: bool
    yes: bool
    json: bool


@run_now.default
def run_jobs_now(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *ids: Id,
    all_: All = False,
    filter_: FilterOption = None,
    error: ErrorOption = None,
    payload: PayloadOption = None,
    dry_run: DryRun = False,
    app: AppOption = None,
    reason: Reason = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Run now; the exit code."""
    search = conditions(filter_, error, payload)
    how = _How(app, reason=reason, dry_run=dry_run, yes=yes, json=json)
    return _change(queue, RUN_NOW, _Which(ids, search, every=all_), how)


@kill.default
def kill_jobs(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *ids: Id,
    all_: All = False,
    filter_: FilterOption = None,
    error: ErrorOption = None,
    payload: PayloadOption = None,
    dry_run: DryRun = False,
    app: AppOption = None,
    reason: Reason = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Kill; the exit code."""
    search = conditions(filter_, error, payload)
    how = _How(app, reason=reason, dry_run=dry_run, yes=yes, json=json)
    return _change(queue, KILL, _Which(ids, search, every=all_), how)


@unblock.default
def unblock_jobs(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *ids: Id,
    all_: All = False,
    filter_: FilterOption = None,
    error: ErrorOption = None,
    payload: PayloadOption = None,
    skip: Annotated[bool, flag("Send the oldest payload to the morgue, and go on with the next.")] = False,
    dry_run: DryRun = False,
    app: AppOption = None,
    reason: Reason = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Unblock; the exit code."""
    search = conditions(filter_, error, payload)
    how = _How(app, reason=reason, dry_run=dry_run, yes=yes, json=json)
    return _change(queue, UNBLOCK_SKIPPING if skip else UNBLOCK, _Which(ids, search, every=all_), how)


@delete.default
def delete_jobs(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *ids: Id,
    all_: All = False,
    filter_: FilterOption = None,
    error: ErrorOption = None,
    payload: PayloadOption = None,
    morgue: Annotated[bool, flag("Jobs of the morgue.")] = False,
    dry_run: DryRun = False,
    app: AppOption = None,
    reason: Reason = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Delete; the exit code."""
    search = conditions(filter_, error, payload)
    how = _How(app, reason=reason, dry_run=dry_run, yes=yes, json=json)
    return _change(queue, DELETE_DEAD if morgue else DELETE, _Which(ids, search, every=all_), how)


def _change(queue: str, words: JobChange, which: _Which, how: _How) -> int:
    from lowkiq_lambda.operate.acts.bulk_actions import WholeListError, prepare
    from lowkiq_lambda.operate.acts.chosen_ids import deletion
    from lowkiq_lambda.store.shard.nodes import FAR

    if bool(which.ids) + bool(which.search) + which.every != 1:
        raise ConfigError("Give ids, --all, or --filter: one of the three.")
    id_filter = id_filter_of(which.search)
    if not which.ids and words.act in {"unblock", "unblock_skipping"}:
        # Only blocked ids are due as late as FAR.
        id_filter = id_filter.from_time(FAR)
    if which.search and words.act == "delete":
        words = words._replace(act=deletion(id_filter))
    named_queue = queue_of(app_of(how.app), queue)
    runner = named_queue.operate.runner
    try:
        action = prepare(runner, words.act, chosen_ids=which.ids or None, filter=id_filter, whole_list=which.every)
    except WholeListError as error:
        raise ConfigError(str(error)) from error
    choice = Choice(", ".join(which.search), reason=how.reason, json=how.json)
    if how.dry_run:
        return dry_run(named_queue, words, action, choice)
    return change(named_queue, words, action, yes=how.yes, choice=choice)
