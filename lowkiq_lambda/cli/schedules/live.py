"""`lowkiq schedules list`, `run`, `on`, `off` and `remove`: the entries of an app on its server."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from cyclopts import App, Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import ConfigError, NoSuchEntry
from lowkiq_lambda.cli.codes import DONE, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import paint, remark, remark_skipped, say, table, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag
from lowkiq_lambda.cli.queues import ACT, ActOptions, OneQueue, QueueName, app_of, worker_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.presentation.formatting import ago, utc, visible

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.operate.presentation.schedules import EntryResponse

_CODES: Final = """
EXIT CODES
  0  It is done.
  1  Nothing was changed: the answer was not yes.
  2  The queue has no such entry; or the command line, the settings or the app
     cannot work; or there is no terminal to ask at, and no --yes.
  3  Redis cannot be reached: run the command again.
"""
_LIST_HELP: Final = """
List the schedule entries of QUEUE, or of all queues: those of code, and those made at run time; when each fired last \
and fires next, and why it does not fire.
"""
_LIST_EPILOGUE: Final = """
EXIT CODES
  0  The entries are printed, be there none.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  All entries of an app:
    lowkiq schedules list
  The names of those that are off, for a program:
    lowkiq schedules list --json \\
      | jq --raw-output '.[] | select(.is_on | not) | .name'
"""
_HEAD: Final = ("QUEUE", "NAME", "TIMES", "ID", "LAST", "NEXT", "STATE")

Name: TypeAlias = Annotated[str, Parameter(name="NAME", help="The name of the entry.")]
Names: TypeAlias = Annotated[str, Parameter(name="NAME", help="The names of entries.", negative="")]
OneName: TypeAlias = Annotated[str | None, Parameter(name="NAME", help="The name of the entry.")]
AllMade: TypeAlias = Annotated[bool, flag("All entries of the queue that were made at run time, in place of a name.")]
AllEntries: TypeAlias = Annotated[bool, flag("All entries of the queue, in place of names.")]
Json: TypeAlias = Annotated[bool, flag("Write the entries as GET /api/v1/schedules does; times are Unix seconds.")]


def print_entries(
    queue: OneQueue = None,
    /,
    *,
    app: AppOption = None,
    json: Json = False,
) -> int:
    """Print them; the exit code."""
    loaded = app_of(app)
    tell_entries(loaded, _entries(loaded, None if queue is None else worker_of(loaded, queue)), json=json)
    return DONE


def run_entry(
    queue: QueueName,
    name: OneName = None,
    /,
    *,
    all_: AllEntries = False,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write id, merged and due_at (Unix seconds) as JSON; with --all a list.")] = False,
) -> int:
    """Push its job; the exit code."""
    from lowkiq_lambda.operate.presentation.schedules import ran

    loaded = app_of(act.app)
    worker = worker_of(loaded, queue)
    _check_all(name, all_=all_)
    if name is None:
        names = [one.name for one in _entries(loaded, worker) if one.is_on and not one.problem]
        question = f"Push the jobs of {_listed(names)}, those that are on, of"
    else:
        question = f"Push the job of {_entry(name)} of"
    if not _is_agreed(loaded, worker, question, act, json=json):
        return NOT_APPLIED
    schedules = loaded.schedules
    try:
        pushed = schedules.run(all=True, worker=worker) if name is None else [schedules.run(name, worker=worker)]
    except NoSuchEntry as error:
        raise ConfigError(str(error)) from error
    note(loaded, worker.queue_name, "run now", _targets(None if name is None else [name]), len(pushed), act.reason)
    if json:
        write_json([*map(ran, pushed)] if name is None else ran(pushed[0]))
    elif name is None:
        say(f"pushed the jobs of {len(pushed):,} {'entry' if len(pushed) == 1 else 'entries'}")
    else:
        merged = ", which waited already" if pushed[0].merged else ""
        say(visible(f"pushed {pushed[0].id}{merged}, due at {utc(pushed[0].due_at)}"))
    return DONE


def remove_entry(
    queue: QueueName,
    name: OneName = None,
    /,
    *,
    all_: AllMade = False,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write removed as JSON; with --all the names of removed and kept entries.")] = False,
) -> int:
    """Remove it; the exit code."""
    from lowkiq_lambda.operate.presentation.schedules import Removed, RemovedAll

    loaded = app_of(act.app)
    worker = worker_of(loaded, queue)
    _check_all(name, all_=all_)
    made = [one.name for one in _entries(loaded, worker) if one.source == "run time"] if name is None else [name]
    if not _is_agreed(loaded, worker, f"Remove {_listed(made)}, with history, of", act, json=json):
        return NOT_APPLIED
    removed, kept = [*made], list[str]()
    try:
        if name is None:
            removed, kept = loaded.schedules.remove_all(worker)
        else:
            loaded.schedules.remove(worker, name)
    except NoSuchEntry as error:
        raise ConfigError(str(error)) from error
    note(loaded, worker.queue_name, "remove", _targets(None if name is None else made), len(removed), act.reason)
    if json:
        write_json(RemovedAll(removed=removed, kept=kept) if name is None else Removed(removed=True))
    else:
        stay = f"; of code, and so kept: {', '.join(map(repr, kept))}" if kept else ""
        say(visible(f"removed {_listed(removed)}{stay}"))
    return DONE


def switch_on(
    queue: QueueName,
    /,
    *names: Names,
    all_: AllEntries = False,
    act: ActOptions = ACT,
    json: Json = False,
) -> int:
    """Switch them on; the exit code."""
    return _switch(queue, None if all_ else names, act, on=True, json=json)


def switch_off(
    queue: QueueName,
    /,
    *names: Names,
    all_: AllEntries = False,
    act: ActOptions = ACT,
    json: Json = False,
) -> int:
    """Switch them off; the exit code."""
    return _switch(queue, None if all_ else names, act, on=False, json=json)


def _switch(queue: str, names: Sequence[str] | None, act: ActOptions, *, on: bool, json: bool) -> int:
    if names is not None and not names:
        raise ConfigError("Give names of entries, or --all: one of the two.")
    loaded = app_of(act.app)
    worker = worker_of(loaded, queue)
    changing = sum(entry.is_on != on for entry in _entries(loaded, worker) if names is None or entry.name in names)
    target = _targets(names)
    question = f"Switch {'on' if on else 'off'} {target}, of which {changing:,} would change, of"
    if not _is_agreed(loaded, worker, question, act, json=json):
        return NOT_APPLIED
    schedules = loaded.schedules
    try:
        (schedules.enable_all if on else schedules.disable_all)(worker, names)
    except NoSuchEntry as error:
        raise ConfigError(str(error)) from error
    note(loaded, worker.queue_name, "enable" if on else "disable", target, changing, act.reason)
    entries = [entry for entry in _entries(loaded, worker) if names is None or entry.name in names]
    if json:
        write_json(entries)
    else:
        say(f"switched {'on' if on else 'off'} {changing:,} of {len(entries):,} entries")
    return DONE


def _entries(app: "Lowkiq", worker: type[Worker[Any]] | None) -> "list[EntryResponse]":
    from lowkiq_lambda.operate.presentation.schedules import EntryResponse, entry_fields

    if worker is None:
        queues, skipped = app.core.queues.all_current()
        remark_skipped(skipped)
        views = app.schedules.all(*(queue.worker for queue in queues.values())) if queues else []
    else:
        views = app.schedules.all(worker)
    return [EntryResponse(**entry_fields(app.schedules, view)) for view in views]


def tell_entries(app: "Lowkiq", entries: "Sequence[EntryResponse]", *, json: bool) -> None:
    """Print them."""
    if json:
        write_json(entries)
        return
    now = app.core.backend.clock.time()
    if entries:
        head, *rows = table(_HEAD, [[*_row(entry, now)] for entry in entries], range(len(_HEAD)))
        say(head, *(_marked(entry, row) for entry, row in zip(entries, rows, strict=True)))
    remark(f"{len(entries):,} {'entry' if len(entries) == 1 else 'entries'}")


def _row(entry: "EntryResponse", now: float) -> Iterator[str]:
    yield entry.queue
    yield entry.name
    yield entry.declared or "-"
    yield entry.id or "-"
    yield "-" if entry.last is None else ago(entry.last - now)
    yield "-" if entry.next is None else f"{ago(entry.next - now)}, {utc(entry.next)}"
    yield entry.problem or ("" if entry.is_on else "off")


def _marked(entry: "EntryResponse", row: str) -> str:
    if entry.problem:
        return paint(row, "red")
    return row if entry.is_on else paint(row, "dim")


def _is_agreed(app: "Lowkiq", worker: type[Worker[Any]], question: str, act: ActOptions, *, json: bool) -> bool:
    name, url = worker.queue_name, without_password(app.core.connections.url)
    return act.is_agreed(visible(f"{question} {name} at {url}?"), json=json)


def _entry(name: str) -> str:
    return f"schedule entry {name!r}"


def _check_all(name: str | None, *, all_: bool) -> None:
    if all_ is (name is not None):
        raise ConfigError("Give the name of an entry, or --all: one of the two.")


def _listed(names: Sequence[str]) -> str:
    """Entries with their count and all their names: a person agrees to each."""
    if len(names) == 1:
        return _entry(names[0])
    return f"{len(names):,} schedule entries ({', '.join(map(repr, names))})" if names else "no schedule entry"


def _targets(names: Sequence[str] | None) -> str:
    if names is None:
        return "all schedule entries"
    return f"schedule {'entry' if len(names) == 1 else 'entries'} {', '.join(map(repr, names))}"


def _changing(name: str, help_: str, example: str, arguments: str) -> App:
    asks = "The command names the queue and asks; with --yes it does not ask."
    return command_app(
        name,
        help_=f"\n{help_}\n\n{asks}\n",
        epilogue=f"{_CODES}\nEXAMPLE\n    {example}\n",
        usage=f"lowkiq schedules {name} [OPTIONS] {arguments}",
    )


list_entries: Final = command_app(
    "list", help_=_LIST_HELP, epilogue=_LIST_EPILOGUE, usage="lowkiq schedules list [OPTIONS] [QUEUE]"
)
list_entries.default(print_entries)
run: Final = _changing(
    "run",
    "Push the job of an entry of QUEUE now, or the jobs of all that are on, each delayed within its jitter. Planned "
    "times do not change.",
    "lowkiq schedules run SyncOrder nightly",
    "QUEUE (NAME | --all)",
)
run.default(run_entry)
on: Final = _changing(
    "on",
    "Switch entries of QUEUE on. Planned times that came while an entry was off never fire.",
    "lowkiq schedules on SyncOrder nightly",
    "QUEUE (NAME ... | --all)",
)
on.default(switch_on)
off: Final = _changing(
    "off",
    "Switch entries of QUEUE off: none fires until it is switched on again, and a job that was pushed stays.",
    'lowkiq schedules off SyncOrder --all --reason "the ERP is closed"',
    "QUEUE (NAME ... | --all)",
)
off.default(switch_off)
remove: Final = _changing(
    "remove",
    "Remove an entry of QUEUE that was made at run time, with its history, or all of them. Entries of code can only be "
    "switched off.",
    "lowkiq schedules remove SyncOrder nightly",
    "QUEUE (NAME | --all)",
)
remove.default(remove_entry)
