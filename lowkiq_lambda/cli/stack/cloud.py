"""`lowkiq stack cloud`: the stack of a project, on this machine."""

import os
import signal
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.output import say
from lowkiq_lambda.cli.parts import app_spec, command_app, flag
from lowkiq_lambda.settings.loading import load_app
from lowkiq_lambda.settings.project import project_root

if TYPE_CHECKING:
    from lowkiq_lambda.stack.cloud.project_cloud import Deployed

_HELP: Final = """
Start AWS on this machine, deploy the stack of the project with its app, and show where the dashboard is. Nothing of \
it is real: no account, no cost. Schedules start a drain of each shard each minute, as they do on AWS. They perform \
the jobs that other programs push to `embedded:`. AWS answers only those who sign with the key that is printed; \
a browser reaches the dashboard alone. Ctrl-C ends everything; the jobs stay in .lowkiq.
"""
_EPILOGUE: Final = """
SETTINGS
  LOWKIQ_APP  The app, where pyproject.toml names none.

EXIT CODES
  0  It was ended; with --once, the stack works.
  1  It could not be started or deployed; with --once, it does not work.
  2  There is no app, or no folder with its code.

EXAMPLES
  The stack, and from another terminal a job for it:
    lowkiq stack cloud
    lowkiq push SyncOrder 17 '{"status": "paid"}'
  As a step of a pipeline:
    lowkiq stack cloud --once
"""
command: Final = command_app("cloud", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq stack cloud [--once]")


@command.default
def deploy(
    *, once: Annotated[bool, flag("End when the stack has drained once, and say whether it works.")] = False
) -> int:
    """Deploy it, and wait; the exit code."""
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.stack.cloud.project_cloud import StackProject, running

    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    spec = app_spec(None, os.environ)
    widest = max((worker.shards_count for worker in load_app(spec, Lowkiq).workers), default=1)
    project = StackProject(project_root(), spec, widest)
    with running(project, say) as deployed:
        if once:
            return _works(deployed)
        say("Ctrl-C ends it; jobs that are pushed to embedded: are drained each minute")
        stop.wait()
    say("the cloud is gone")
    return DONE


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
