"""`lowkiq completion`: what has a shell complete the words of `lowkiq`."""

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from lowkiq_lambda.cli.catalog import LOWKIQ, every_command, lowkiq
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import say
from lowkiq_lambda.cli.parts import command_app

_HELP: Final = """
Print the script by which a shell completes the commands and the options of lowkiq.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The script is printed.
  2  The command line cannot work.

EXAMPLES
  For this shell, or for each in ~/.bashrc:
    source <(lowkiq completion bash)
  For zsh, in a folder of its fpath:
    lowkiq completion zsh > ~/.zfunc/_lowkiq
  For fish:
    lowkiq completion fish > ~/.config/fish/completions/lowkiq.fish
  For PowerShell, in the profile:
    lowkiq completion powershell | Out-String | Invoke-Expression
"""
command: Final = command_app(
    "completion", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq completion (bash | zsh | fish | powershell)"
)


@command.default
def print_script(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"], Parameter(name="SHELL", help="The shell that completes.")
    ],
    /,
) -> int:
    """Print it; the exit code."""
    say(lowkiq(*every_command()).generate_completion(prog_name=LOWKIQ, shell=shell))
    return DONE
