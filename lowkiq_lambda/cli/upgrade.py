"""`lowkiq upgrade`: the stack's files of a project, in step with the library."""

from typing import Annotated, Final

from lowkiq_lambda.cli.codes import DIFFERENT, DONE
from lowkiq_lambda.cli.output import say
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.settings.project import project_root
from lowkiq_lambda.stack.scaffold.owned import own_version
from lowkiq_lambda.stack.scaffold.upgrade import NEW, FileChange, Remedy, apply, changes, note_version

_HELP: Final = """
Replace the files of the stack, below lowkiq/, by those of the library that is installed. A file that somebody has \
edited stays as it is: FILE.new is written beside it, and the difference is shown. Merge it, or take the new file.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  All files are those of the library.
  1  Some were edited, and wait to be merged; with --check, some differ.
  2  This is not a project of `lowkiq new`, or a newer library wrote it.

EXAMPLES
  After an update of the library:
    lowkiq upgrade
  As a step of a pipeline, which changes nothing:
    lowkiq upgrade --check
"""
_PAST: Final = {Remedy.ADD: "added", Remedy.REPLACE: "replaced", Remedy.REMOVE: "removed"}
command: Final = command_app("upgrade", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq upgrade [--check]")


@command.default
def upgrade(*, check: Annotated[bool, flag("Change nothing, and tell what would change.")] = False) -> int:
    """Replace them; the exit code."""
    root = project_root()
    differing = changes(root)
    for change in differing:
        if not check:
            apply(root, change)
        _tell(change, check=check)
    if not check:
        note_version(root)
    if not differing:
        say(f"All files of the stack are those of lowkiq_lambda {own_version()}.")
    needs_people = any(change.remedy is Remedy.MERGE for change in differing)
    return DIFFERENT if needs_people or (check and differing) else DONE


def _tell(change: FileChange, *, check: bool) -> None:
    if change.remedy is Remedy.MERGE:
        place = "" if check else f", and the library's is in {change.path}{NEW}"
        say(f"edited    {change.path} stays as it is{place}", change.diff)
    else:
        say(f"{'would be ' * check}{_PAST[change.remedy]:9} {change.path}")
