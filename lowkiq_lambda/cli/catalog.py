"""The commands of `lowkiq`: each is imported when it is called, and the list of them costs nothing."""

from collections.abc import Collection, Mapping
from copy import copy
from importlib import import_module
from types import MappingProxyType
from typing import Final, NamedTuple

from cyclopts import App, Group

_HELP: Final = """
Ordered, grouped background jobs on Redis or Valkey: run them, push them, look at them and change them.
"""
_EPILOGUE: Final = """
An app is named as MODULE:APP, shop.jobs:app for the variable app in the module
shop.jobs, or by LOWKIQ_APP, or as app in [tool.lowkiq] of pyproject.toml.
--context NAME, or LOWKIQ_CONTEXT, takes app, redis_url, dashboard_url and env from
[tool.lowkiq.contexts.NAME] of pyproject.toml, for any command.
`lowkiq COMMAND --help` shows the options, the settings and the exit codes of a
command.

EXAMPLES
  The app of this project, and its dashboard at http://127.0.0.1:8080/:
    lowkiq run --dashboard 8080
  A job from another terminal, and why it does not run yet:
    lowkiq push SyncOrder 17 '{"state": "paid"}' --delay 60
    lowkiq why SyncOrder 17
  All queues, every two seconds:
    lowkiq stats --watch
"""
LOWKIQ: Final = "lowkiq"
_OPTIONS: Final = Group("Options", sort_key=9)
_COMMANDS: Final = Group("Commands")


class Listed(NamedTuple):
    """A command in the list: the module and the name of its app, and what it does, in a line.

    `commands`: those of a group, such as `lowkiq stack`; its module has a function that makes the app.
    """

    path: str
    summary: str
    commands: "Mapping[str, Listed]" = MappingProxyType({})


_STACK: Final = {
    "invoke": Listed("stack.invoke:command", "Play an event against a function's handler, without AWS."),
    "cloud": Listed("stack.cloud:command", "Deploy the stack to a cloud on this machine, until Ctrl-C."),
    "costs": Listed("stack.costs:command", "Estimate what a month costs on AWS, in five ways."),
    "build": Listed("stack.build:command", "Put the package of a Lambda function together."),
    "schedules": Listed(
        "stack.schedules.command:command", "Bring the drain function's schedules in line with the app's workers."
    ),
    "rollback": Listed("stack.rollback:command", "Let the functions run the version before."),
}
"""In the order in which a project meets them."""
_SCHEDULES: Final = {
    "list": Listed("schedules.live:list_entries", "List the entries, their next times, and why one cannot fire."),
    "run": Listed("schedules.live:run", "Push the job of an entry now."),
    "on": Listed("schedules.live:on", "Switch entries on."),
    "off": Listed("schedules.live:off", "Switch entries off, until they are switched on again."),
    "put": Listed("schedules.put:command", "Make an entry at run time, or replace it."),
    "remove": Listed("schedules.live:remove", "Remove an entry that was made at run time."),
    "next": Listed("schedules.planned:upcoming", "Print the next planned times of each entry; without Redis."),
    "load": Listed("schedules.planned:load", "Print how many jobs start in which minutes; without Redis."),
    "diff": Listed("schedules.planned:diff", "Print what fires in one of two sources alone; without Redis."),
    "dump": Listed("schedules.planned:dump", "Print the entries as JSON; without Redis."),
}
"""Those that ask the server first."""
COMMANDS: Final = {
    "Your project": {
        "new": Listed("new:command", "Write a project: an app, its tests, and its stack on AWS."),
        "fuzz": Listed("fuzz:command", "Try to refute that repeats, deaths and freezes do no harm to a handler."),
        "record": Listed("record:command", "Write the payloads of a queue to a file, masked, as input of a fuzz."),
        "upgrade": Listed("upgrade:command", "Replace the stack's files of a project by those of the library."),
        "stack": Listed("stack.command:group", "Build, try, price and schedule the functions on AWS.", _STACK),
    },
    "Perform jobs": {
        "run": Listed("run:command", "Run the daemon, which performs the jobs of an app."),
        "drain": Listed("drain:command", "Perform the due jobs once, and print the outcomes."),
    },
    "Jobs": {
        "push": Listed("push:command", "Push a job, or all jobs of a file."),
        "ls": Listed("ls:command", "List jobs that wait, are in flight or are dead; all, or those that fit a search."),
        "errors": Listed("errors:command", "Print the last errors, in groups of those that are alike."),
        "show": Listed("show:command", "Show a job: its place, its payloads and its failures."),
        "why": Listed("why:command", "Explain in a sentence why a job runs, or does not."),
        "requeue": Listed("requeue:command", "Requeue jobs of the morgue, at once or at a rate."),
        "run-now": Listed("change:run_now", "Make waiting jobs due now."),
        "kill": Listed("change:kill", "Send waiting jobs that have failed to the morgue, the list of dead jobs."),
        "unblock": Listed("change:unblock", "Unblock jobs: their oldest payload is tried again."),
        "cancel": Listed("requesting:cancel", "Stop jobs for good, in flight too."),
        "delete": Listed("change:delete", "Delete waiting jobs, or jobs of the morgue."),
        "forget-keys": Listed(
            "forget_keys:command", "Forget keys of jobs, so that jobs with them can be pushed again."
        ),
        "edit": Listed("edit:command", "Put another payload in the place of one that waits or is dead."),
        "undo": Listed("undo:command", "Take back a change of jobs, for ten minutes."),
    },
    "Queues": {
        "top": Listed("top:command", "Show the queues on one live screen, in trouble first, with keys to act."),
        "stats": Listed("stats:command", "Count the waiting, failed and dead jobs of each queue."),
        "pause": Listed("pause:pause", "Pause a queue, or a job of it, for a time or until it is resumed."),
        "resume": Listed("pause:resume", "End a pause."),
        "forget-timing": Listed("pause:forget_timing", "Let drains forget how long batches took until now."),
        "limits": Listed("limits:command", "Print what limits queues now, and set limits or take them back."),
        "scale": Listed("scale:command", "Print how many threads the queues could use now, to scale by."),
        "tenants": Listed("tenants:command", "List the tenants of a queue in the order in which they are served."),
        "evict": Listed("evict:command", "Refuse all further writes of the process that holds a shard."),
        "reshard": Listed(
            "reshard:command", "Change the number of shards of a queue, while it is pushed to and drained."
        ),
        "simulate": Listed(
            "simulate.command:command", "Simulate a queue with other shards and compute: how late, for how much."
        ),
        "auto": Listed(
            "auto:command", "Print how many shards queues need, and why; make them, or stop that for a time."
        ),
        "runs": Listed("runs:command", "Print what a queue has run: which ids, when, and with which outcome."),
        "tail": Listed("runs:tail", "Print runs as they end, of a queue or of all queues."),
        "replay": Listed("replay:command", "Push the payloads of runs that are over again, at once or at a rate."),
        "verify": Listed("verify:command", "Verify the order of a queue by its journals, and that no payload is lost."),
    },
    "Tasks and schedules": {
        "tasks": Listed("tasks:command", "List tasks, print how far one has come, or cancel it."),
        "schedules": Listed(
            "schedules.command:group", "List, switch, run and put schedule entries; print when they fire.", _SCHEDULES
        ),
    },
    "People and machines": {
        "activity": Listed("activity:command", "Print who changed what, from where, and why."),
        "processes": Listed(
            "processes:command", "List the processes that drain and their work; quiet one, or stop it."
        ),
        "advise": Listed("advise:command", "Compare what the app costs this month with other ways to run it."),
        "doctor": Listed("doctor:command", "Check the server, the queues and the processes, and print what to do."),
    },
    "This machine": {
        "dashboard": Listed("dashboard:command", "Serve the dashboard, and perform no jobs."),
        "redis": Listed("embedded:redis", "Print the URL of the embedded server."),
        "reset": Listed("embedded:reset", "Remove a queue from the embedded server."),
        "open": Listed("open_page:command", "Print and open the dashboard's page of a queue or a job."),
        "alerts": Listed("alerts.command:command", "Print rules for Prometheus, or a board for Grafana."),
        "completion": Listed("completion:command", "Print the script by which a shell completes the words of lowkiq."),
    },
}


def every_command() -> dict[str, Listed]:
    """All commands by their words: "stack" is one, "stack build" another."""
    return {
        words: listed
        for commands in COMMANDS.values()
        for name, group in commands.items()
        for words, listed in ((name, group), *((f"{name} {each}", one) for each, one in group.commands.items()))
    }


def lowkiq(*words: str) -> App:
    """The program. Only the commands with these words, such as "stack costs", are more than a line of its help."""
    app = App(
        name=LOWKIQ,
        help=_HELP,
        help_epilogue=_EPILOGUE,
        help_format="plaintext",
        version=_version,
        group_commands=_OPTIONS,
        usage="Usage: lowkiq COMMAND [OPTIONS]",
        # The program says what that means.
        suppress_keyboard_interrupt=False,
    )
    for place, (title, commands) in enumerate(COMMANDS.items()):
        _add(app, commands, Group(title, sort_key=place), words)
    return app


def _add(app: App, commands: Mapping[str, Listed], group: Group, words: Collection[str], before: str = "") -> None:
    for position, (name, listed) in enumerate(commands.items()):
        if before + name in words:
            command = _loaded(listed)
            _add(command, listed.commands, _COMMANDS, words, f"{before}{name} ")
        else:
            command = App(name=name, help=listed.summary, group=group, sort_key=position)
        app.command(command)


def _version() -> str:
    from importlib.metadata import version

    return version("lowkiq_lambda")


def _loaded(listed: Listed) -> App:
    module, _, name = listed.path.partition(":")
    member = getattr(import_module(f"lowkiq_lambda.cli.{module}"), name)
    # Of its own, as the usage of a command may be changed, and commands are added to a group.
    command: App = member() if listed.commands else copy(member)
    return command
