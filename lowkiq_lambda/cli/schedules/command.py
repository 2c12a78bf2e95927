"""`lowkiq schedules` itself, and the help that teaches which of its commands asks the server."""

from typing import Final

from cyclopts import App

from lowkiq_lambda.cli.parts import command_app

_HELP: Final = """
Look at the schedule entries of an app on its server, switch them, run them and make them; and print when entries \
fire, without a server.

An entry pushes a job at planned times: app.cron, app.every and app.at declare them in code, and put makes one at run \
time.
"""
_EPILOGUE: Final = """
ON THE SERVER of --app: list, run, on, off, put, remove. An entry is named by
its queue and its name, as list prints them.
WITHOUT A SERVER, of a source: next, load, diff, dump. A source is an app as
MODULE:APP, a TOML file with entries, or a .json file that dump wrote. No entry
fires.

EXIT CODES
  0  This help is printed. `lowkiq schedules COMMAND --help` has those of a
     command.
  2  There is no such command.

EXAMPLES
  Which entries there are, when they fire next, and which cannot:
    lowkiq schedules list
  No import tonight, and again tomorrow:
    lowkiq schedules off SyncOrder nightly --reason "the ERP is closed"
    lowkiq schedules on SyncOrder nightly
  Which minutes of a day are the fullest:
    lowkiq schedules load schedules.toml --day 2026-10-25
  In a pipeline, what a change does to the schedules of the last release:
    lowkiq schedules dump shop.jobs:app > new.json
    lowkiq schedules diff released.json new.json
"""


def group() -> App:
    """A new one, without its commands: the catalog adds them."""
    return command_app("schedules", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq schedules COMMAND [OPTIONS]")
