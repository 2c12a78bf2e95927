"""`lowkiq stack` itself, and the help that teaches which of its commands comes when."""

from typing import Final

from cyclopts import App

from lowkiq_lambda.cli.parts import command_app

_HELP: Final = """
Build, try, price and schedule the stack of a project: the Lambda functions that run its jobs, their schedules and \
alarms, as template.yaml declares them.

SAM deploys the stack. These commands do what SAM cannot: they run a function or the whole stack on this machine, \
estimate the bill, make small packages, and keep a schedule for each shard.
"""
_EPILOGUE: Final = """
FROM A PROJECT TO A STACK
  lowkiq new shop         Write the project, with its stack below lowkiq/.
  lowkiq stack invoke     Try one function on this machine.
  lowkiq stack cloud      Try the whole stack on this machine.
  lowkiq stack costs      Look at the bill before there is one.
  sam build, sam deploy   Deploy. SAM packs each function as lowkiq stack build
                          does, which is for templates of your own.
  lowkiq stack schedules  Make the schedules outside of the template, if there
                          are too many for one; indexes prints ShardIndexes.
  lowkiq stack rollback   Let the functions run the version before.
  lowkiq upgrade          Renew the files of the stack, after an update of the
                          library.

EXIT CODES
  0  This help is printed. `lowkiq stack COMMAND --help` has those of a command.
  2  There is no such command.

EXAMPLES
  What shard 0 does in a minute, without AWS:
    lowkiq stack invoke shop.jobs:app --event '{"shard": 0}'
  An idle stack, beside a Redis that is there already:
    lowkiq stack costs --jobs 0 --redis none
"""


def group() -> App:
    """A new one, without its commands: the catalog adds them."""
    return command_app("stack", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq stack COMMAND [OPTIONS]")
