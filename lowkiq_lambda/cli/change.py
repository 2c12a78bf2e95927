"""`lowkiq run-now`, `kill`, `unblock` and `delete`: changes of jobs, each after a question."""

from typing import Annotated, Final

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.changing import All, Id, JobChange, change, change_app
from lowkiq_lambda.cli.parts import Yes, flag
from lowkiq_lambda.cli.queues import AppOption, QueueName, app_of, queue_of
from lowkiq_lambda.operate.acts.bulk_actions import prepare
from lowkiq_lambda.operate.inspect.id_filter import ALL
from lowkiq_lambda.store.shard.nodes import FAR

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
""",
)
kill: Final = change_app(
    "kill",
    "Send jobs of QUEUE that wait for a retry to the morgue, the list of dead jobs, with their last error.\n",
    """  A job that no retry will mend:
    lowkiq kill SyncOrder 17
""",
)
unblock: Final = change_app(
    "unblock",
    "Let blocked jobs of QUEUE go on: their oldest payload is tried as if it had never failed.\n",
    """  All that are blocked, once the cause is corrected:
    lowkiq unblock SyncOrder --all
  One whose oldest payload is to be left out:
    lowkiq unblock SyncOrder 17 --skip
""",
)
delete: Final = change_app(
    "delete",
    "Delete what waits in QUEUE; with --morgue what lies in its morgue.\n",
    """  The jobs of an id that begins with a hyphen:
    lowkiq delete SyncOrder -- -17
  All jobs of the morgue, in a script:
    lowkiq delete SyncOrder --morgue --all --yes
""",
)


@run_now.default
def run_jobs_now(queue: QueueName, /, *ids: Id, all_: All = False, app: AppOption = None, yes: Yes = False) -> int:
    """Run now; the exit code."""
    return _change(queue, RUN_NOW, ids, app, every=all_, yes=yes)


@kill.default
def kill_jobs(queue: QueueName, /, *ids: Id, all_: All = False, app: AppOption = None, yes: Yes = False) -> int:
    """Kill; the exit code."""
    return _change(queue, KILL, ids, app, every=all_, yes=yes)


@unblock.default
def unblock_jobs(
    queue: QueueName,
    /,
    *ids: Id,
    all_: All = False,
    skip: Annotated[bool, flag("Send the oldest payload to the morgue, and go on with the next.")] = False,
    app: AppOption = None,
    yes: Yes = False,
) -> int:
    """Unblock; the exit code."""
    return _change(queue, UNBLOCK_SKIPPING if skip else UNBLOCK, ids, app, every=all_, yes=yes)


@delete.default
def delete_jobs(
    queue: QueueName,
    /,
    *ids: Id,
    all_: All = False,
    morgue: Annotated[bool, flag("Jobs of the morgue.")] = False,
    app: AppOption = None,
    yes: Yes = False,
) -> int:
    """Delete; the exit code."""
    return _change(queue, DELETE_DEAD if morgue else DELETE, ids, app, every=all_, yes=yes)


def _change(  # noqa: PLR0913 - what the commands are given
    queue: str, words: JobChange, ids: tuple[str, ...], app: str | None, *, every: bool, yes: bool
) -> int:
    if bool(ids) == every:
        raise ConfigError("Give ids, or --all: one of the two.")
    named_queue = queue_of(app_of(app), queue)
    # Only blocked ids are due as late as FAR.
    id_filter = ALL.from_time(FAR) if every and words.act in {"unblock", "unblock_skipping"} else ALL
    return change(
        named_queue,
        words,
        prepare(
            named_queue.operate.runner, words.act, chosen_ids=None if every else ids, filter=id_filter, whole_list=every
        ),
        yes=yes,
    )
