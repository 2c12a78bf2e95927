"""`lowkiq completion`: what has a shell complete the words of `lowkiq`."""

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from lowkiq_lambda.cli.catalog import LOWKIQ, every_command, lowkiq
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import say
from lowkiq_lambda.cli.parts import command_app
from lowkiq_lambda.settings.project import contexts_tables

_HELP: Final = """
Print the script by which a shell completes the commands and the options of lowkiq; bash, zsh and fish also complete \
the contexts of the project behind --context. With "contexts" print their names.
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
    "completion", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq completion (bash | zsh | fish | powershell | contexts)"
)
_BASH: Final = """
_lowkiq_contexts() {
  local IFS=$'\\n' cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
  if [[ "$cur" == "=" ]]; then cur=""; elif [[ "$prev" == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
  if [[ "$prev" == --context ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(lowkiq completion contexts 2>/dev/null)" -- "$cur")
  else
    _lowkiq "$@"
    if [[ "$cur" == -* && --context == "$cur"* ]]; then COMPREPLY+=(--context); fi
  fi
}
complete -F _lowkiq_contexts lowkiq
"""
_ZSH: Final = """
_lowkiq_contexts() {
  if [[ ${words[CURRENT-1]} == --context ]]; then
    compadd -- ${(f)"$(lowkiq completion contexts 2>/dev/null)"}
  else
    _cyclopts_lowkiq "$@"
  fi
}
if [[ $funcstack[1] == _lowkiq ]]; then _lowkiq_contexts "$@"; else compdef _lowkiq_contexts lowkiq; fi
"""
_FISH: Final = """
complete -c lowkiq -l context -x -a '(lowkiq completion contexts 2>/dev/null)' -d 'The context of the project.'
"""
_CONTEXTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""What each shell asks for the contexts: they are those of the folder in which somebody types."""


@command.default
def print_script(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell", "contexts"],
        Parameter(name="SHELL", help="The shell that completes, or contexts: print the names of the project's."),
    ],
    /,
) -> int:
    """Print it; the exit code."""
    if shell == "contexts":
        say(*contexts_tables())
        return DONE
    script = lowkiq(*every_command()).generate_completion(prog_name=LOWKIQ, shell=shell)
    say(script + _CONTEXTS.get(shell, ""))
    return DONE
