"""The site: what `make docs` makes below one folder."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from docs_build.staging import stage

ROOT: Final = Path(__file__).parents[1]
CONFIG: Final = ROOT / "mkdocs.yml"
STYLE: Final = Path(__file__).with_name("site.css")
COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
PROGRAM: Final = ROOT / ".tools" / "docs" / "bin" / "zensical"


def build(folder: Path) -> list[str]:
    """Make `folder`/site anew, and return what the builder complains of."""
    if not PROGRAM.exists():
        return [f"There is no {PROGRAM.relative_to(ROOT)}: run `make setup`."]
    for part in (".cache", "pages", "site"):  # the builder's cache does not see that a docstring has changed
        shutil.rmtree(folder / part, ignore_errors=True)
    stage(ROOT, folder / "pages")
    shutil.copyfile(CONFIG, folder / CONFIG.name)
    shutil.copyfile(STYLE, folder / "pages" / STYLE.name)
    done = subprocess.run(
        [PROGRAM, "build", "--strict", "--config-file", folder / CONFIG.name],
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # where docstrings are looked for
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said, _, _ = COLOUR.sub("", done.stdout).partition("Traceback")
    return [said.strip()] if done.returncode else []
