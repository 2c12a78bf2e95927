"""`lowkiq run-now`, `kill`, `unblock` and `delete`: changes of jobs, each after a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.changing import (
    All,
    DryRun,
    Id,
    JobChange,
    JobChoice,
    Json,
    Rate,
    Start,
    change,
    change_app,
    dry_run,
    pace_words,
)
from lowkiq_lambda.cli.filters import FILTERS, SEARCH, SearchOptions, id_filter_of, logged
from lowkiq_lambda.cli.parts import flag
from lowkiq_lambda.cli.queues import ACT, ActOptions, QueueName, app_of, queue_of
from lowkiq_lambda.operate.acts.requeue_terms import RequeueOptions

RUN_NOW: Final = JobChange("run_now", "Make due now", "waiting for a later time in", "made due")
KILL: Final = JobChange("kill", "Send to the morgue", "waiting after a failure in", "killed")
UNBLOCK: Final = JobChange("unblock", "Unblock", "waiting behind a dead head in", "unblocked")
UNBLOCK_SKIPPING: Final = UNBLOCK._replace(act="unblock_skipping", asked="Skip the oldest payload of")
DELETE: Final = JobChange("delete", "Delete for good", "waiting in", "deleted")
DELETE_DEAD: Final = JobChange("delete_dead", "Delete for good", "in the morgue of", "deleted")

run_now: Final = change_app(
    "run-now",
    """Make jobs of QUEUE that wait for a later time due now, in their order: retries, and delayed jobs.

With --rate each id gets a time of its own, so many in each second from now on. An id that is due by its \
turn in any case keeps its time.
""",
    """  A job that would be retried in an hour:
    lowkiq run-now SyncOrder 17
  All whose last error was a timeout, in a script:
    lowkiq run-now SyncOrder --error timeout --yes
  The same, ten of them in a second, and before that how many and until when:
    lowkiq run-now SyncOrder --error timeout --rate 10 --dry-run
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
    lowkiq delete SyncOrder --morgue --all --yes --reason "test data"
  Those whose ids begin with "test-", with a word for the activity:
    lowkiq delete SyncOrder --filter prefix=test- --reason "left by a test"
""",
    more=FILTERS,
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """Which jobs a command is about, if not those of ids, and what it does with them."""

    all_: All = False
    search: SearchOptions = SEARCH
    dry_run: DryRun = False
    act: ActOptions = ACT
    json: Json = False


CHANGE: Final = ChangeOptions()


@run_now.default
def run_jobs_now(
    queue: QueueName, /, *ids: Id, rate: Rate = None, start: Start = None, options: ChangeOptions = CHANGE
) -> int:
    """Run now; the exit code."""
    return _change(queue, RUN_NOW, ids, options, {"rate": rate, "start": start})


@kill.default
def kill_jobs(queue: QueueName, /, *ids: Id, options: ChangeOptions = CHANGE) -> int:
    """Kill; the exit code."""
    return _change(queue, KILL, ids, options)


@unblock.default
def unblock_jobs(
    queue: QueueName,
    /,
    *ids: Id,
    skip: Annotated[bool, flag("Send the oldest payload to the morgue, and go on with the next.")] = False,
    options: ChangeOptions = CHANGE,
) -> int:
    """Unblock; the exit code."""
    return _change(queue, UNBLOCK_SKIPPING if skip else UNBLOCK, ids, options)


@delete.default
def delete_jobs(
    queue: QueueName,
    /,
    *ids: Id,
    morgue: Annotated[bool, flag("Jobs of the morgue.")] = False,
    forget_keys: Annotated[
        bool, flag("Forget the keys of these ids, so that jobs with them can be pushed again.")
    ] = False,
    options: ChangeOptions = CHANGE,
) -> int:
    """Delete; the exit code."""
    if forget_keys and not ids:
        raise ConfigError("--forget-keys needs ids: lowkiq forget-keys --all forgets the keys of a whole queue.")
    return _change(queue, DELETE_DEAD if morgue else DELETE, ids, options, forget_keys=forget_keys)


def _change(  # noqa: PLR0913 - a change in words, and its options
    queue: str,
    words: JobChange,
    ids: Sequence[str],
    options: ChangeOptions,
    pace: RequeueOptions | None = None,
    *,
    forget_keys: bool = False,
) -> int:
    from lowkiq_lambda.operate.acts.bulk_actions import prepare
    from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
    from lowkiq_lambda.operate.acts.chosen_ids import deletion
    from lowkiq_lambda.operate.acts.requeueing import timed
    from lowkiq_lambda.store.shard.nodes import FAR

    search = options.search.words
    if bool(ids) + bool(search) + options.all_ != 1:
        raise ConfigError("Give ids, --all, or --filter: one of the three.")
    id_filter = id_filter_of(search)
    if not ids and words.act in {"unblock", "unblock_skipping"}:
        # Only blocked ids are due as late as FAR.
        id_filter = id_filter.from_time(FAR)
    if search and words.act == "delete":
        words = words._replace(act=deletion(id_filter))
    named_queue = queue_of(app_of(options.act.app), queue)
    runner = named_queue.operate.runner
    try:
        action = prepare(runner, words.act, chosen_ids=ids or None, filter=id_filter, whole_list=options.all_)
        action = timed(runner, action, pace) if pace else action
    except ValueError as error:
        raise ConfigError(str(error)) from error

    def once_agreed(action: BulkAction) -> BulkAction:
        if forget_keys:
            named_queue.operate.forget_keys(ids=ids)
        # People take their time: the first is due when they have answered.
        return timed(runner, action, pace) if pace else action

    rate = pace.get("rate") if pace else None
    choice = JobChoice(
        logged(search, named_queue.app.config.mask), pace_words(rate), reason=options.act.reason, json=options.json
    )
    if options.dry_run:
        return dry_run(named_queue, words, action, choice)
    if options.act.yes:
        action = once_agreed(action)
    return change(named_queue, words, action, yes=options.act.yes, choice=choice, once_agreed=once_agreed)
