"""`lowkiq completion`: the shells that are here complete with it."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda.cli import catalog, main
from tests.kit.daemons import clean_environment

NAMES: Final = {name for words in catalog.every_command() for name in words.split()}
_COMPLETE: Final = """
lowkiq() {{ {python} -m lowkiq_lambda "$@"; }}
source "{script}"
COMP_WORDS=({words}) COMP_CWORD={last}
"$(complete -p lowkiq | sed 's/.*-F \\([^ ]*\\).*/\\1/')" lowkiq "" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_script_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the shell, all commands and the options of one are in it."""
    assert 0 == main(["completion", shell])

    script = capsys.readouterr().out
    assert [] == [name for name in NAMES if name not in script]
    assert "max-memory" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["re"], {"record", "redis", "replay", "requeue", "reset", "reshard", "resume"}),
        (["sho"], {"show"}),
        (["stack", "co"], {"costs"}),
        (["stats", "--con"], {"--context"}),
        (["stats", "--context", "pro"], {"prod", "project"}),
        (["--context", "=", "s"], {"staging"}),
        (["stats", "--context", "prod", "--only"], {"--only-trouble"}),
    ],
)
def test_bash_completes(
    words: list[str], completed: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The beginning of a command is completed by a real shell, and so is a context of the folder where it is typed."""
    tables = "".join(f"[tool.lowkiq.contexts.{name}]\n" for name in ("prod", "project", "staging"))
    (tmp_path / "pyproject.toml").write_text(tables)
    main(["completion", "bash"])
    script = tmp_path / "lowkiq.bash"
    script.write_text(capsys.readouterr().out)
    typed = " ".join(["lowkiq", *words])
    done = subprocess.run(
        ["bash", "--norc", "-c", _COMPLETE.format(python=sys.executable, script=script, words=typed, last=len(words))],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert completed == {*done.stdout.split()}
