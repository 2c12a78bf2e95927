"""One file in the place of a folder of many small ones: a package is smaller so, and opens one file, not forty.

It imports the standard library alone, as the build of a wheel runs it by its path.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDERS: Final[Mapping[str, str]] = {"dashboard/templates": "*.html", "store/lua": "*/*.lua"}
"""Of lowkiq_lambda, and the files in each; what reads one looks for its bundle first."""
STACK: Final = ("template.yaml", "infra/*.yaml", "infra/package/*/Makefile", "infra/terraform/*.tf", "infra/cdk/*.py")
"""Of the checkout: the files that a project has copies of."""
LOCKS: Final = tuple(f"requirements/{name}.txt" for name in ("cloud", "dashboard-function", "drain-function"))
"""Of what is installed in our versions. The wheel has these and those of the stack as one file."""

_COMMENT: Final = re.compile(r"^ *--(?!!).*\n", re.MULTILINE)
"""A line of a script that is not sent to servers either: store/shard/scripts.py."""


def bundled(folder: Path, *patterns: str) -> str:
    """JSON: the texts of the files that match, by their paths in the folder."""
    files = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    texts = {path.relative_to(folder).as_posix(): _text(path) for path in files}
    return json.dumps(texts, indent=0)


def bundle(package: Path) -> None:
    """In that copy of lowkiq_lambda, put a bundle beside the place of each folder that is there."""
    for name, pattern in FOLDERS.items():
        folder = package / name
        if folder.is_dir():
            (package / f"{name}.json").write_text(bundled(folder, pattern), encoding="utf-8")
            shutil.rmtree(folder)


def _text(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return _COMMENT.sub("", text) if path.suffix == ".lua" else text
