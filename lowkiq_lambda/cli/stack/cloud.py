"""`lowkiq stack cloud`: the stack of a project, on this machine."""

import os
import signal
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.output import say
from lowkiq_lambda.cli.parts import app_spec, command_app, flag
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.settings.loading import load_app
from lowkiq_lambda.settings.project import project_root

if TYPE_CHECKING:
    from lowkiq_lambda.stack.cloud.project_cloud import Deployed

_HELP: Final = """
Start AWS on this machine, deploy the stack of the project with its app, and show where the dashboard is. Nothing of \
it is real: no account, no cost. Schedules start a drain of each shard each minute, as they do on AWS. They perform \
the jobs that other programs push to `embedded:`. AWS answers only those who sign with the key that is printed; \
a browser reaches the dashboard alone. Alarms of the template are evaluated each minute, and printed when they change. \
Ctrl-C ends everything; the jobs stay in .lowkiq.

Parameters are those of samconfig.toml, and of --parameter. The same command from another terminal builds the project \
again, deploys it into the cloud that runs, and ends.
"""
_EPILOGUE: Final = """
SETTINGS
  LOWKIQ_APP  The app, where pyproject.toml names none.

EXIT CODES
  0  It was ended; with --once, the stack works.
  1  It could not be started or deployed; with --once, it does not work.
  2  There is no app, no folder with its code, or no such parameter.

EXAMPLES
  The stack, and from another terminal a job for it:
    lowkiq stack cloud
    lowkiq push SyncOrder 17 '{"status": "paid"}'
  With an inbox; the same again, after a change of the code:
    lowkiq stack cloud --parameter Inbox=fifo
  As a step of a pipeline:
    lowkiq stack cloud --once
"""
_LOOK_INTERVAL: Final = 2.0

command: Final = command_app("cloud", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq stack cloud [OPTIONS]")


@command.default
def deploy(
    *,
    parameter: Annotated[
        list[str] | None, Parameter(help="A parameter of the stack, as NAME=VALUE; may be given again.", negative="")
    ] = None,
    once: Annotated[bool, flag("End when the stack has drained once, and say whether it works.")] = False,
) -> int:
    """Deploy it, and wait; the exit code."""
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.stack.cloud.project_cloud import StackProject, deploy_again, running

    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    spec = app_spec(None, os.environ)
    widest = max((count_of(worker) for worker in load_app(spec, Lowkiq).workers), default=1)
    project = StackProject(project_root(), spec, widest)
    if other := deploy_again(project, parameter or (), say):
        return _works(other) if once else DONE
    with running(project, parameter or (), say) as deployed:
        if once:
            return _works(deployed)
        say("Ctrl-C ends it; jobs that are pushed to embedded: are drained each minute")
        states: dict[str, str] = {}
        while not stop.wait(_LOOK_INTERVAL):
            _say_changes(deployed, states)
    say("the cloud is gone")
    return DONE


def _say_changes(deployed: "Deployed", states: dict[str, str]) -> None:
    """Say which alarms have changed their states; one that has no state yet is fine, as far as anybody knows."""
    for alarm in deployed.deployment.alarms:
        name, state = alarm["AlarmName"], alarm["StateValue"]
        before = states.get(name, "OK")
        states[name] = "OK" if state == "INSUFFICIENT_DATA" else state
        if states[name] != before:
            say(f"alarm        {name}: {states[name]}. {alarm.get('AlarmDescription', '').partition('. ')[0]}")


def _works(deployed: "Deployed") -> int:
    drained = deployed.tick()
    if not (isinstance(drained, dict) and "counts" in drained):
        say(f"the drain function failed: {drained}")
        return FAILED
    if not deployed.shows_its_dashboard:
        say("the dashboard does not answer")
        return FAILED
    say("the stack works: a drain has ended, and the dashboard answers")
    return DONE
