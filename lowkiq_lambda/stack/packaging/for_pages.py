"""Takes out of a function's package what the extra `lambda` brought for the dashboard, and nothing there needs."""

import re
import shutil
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

from lowkiq_lambda.stack.packaging.own_code import REQUIREMENTS
from lowkiq_lambda.stack.scaffold.source import lock_file

_NAME: Final = re.compile(r"^[A-Za-z0-9][\w.-]*", re.MULTILINE)
_LIBRARY: Final = "lowkiq-lambda"


def leave_out_pages(into: Path) -> None:
    """Remove them, but for those that the app's requirements.txt names, or another package in that folder may need."""
    there = {_plain(each.name): each for each in distributions(path=[str(into)])}
    without, with_pages = (_names(lock_file(f"{kind}-function")) for kind in ("drain", "dashboard"))
    candidates = (with_pages - without) & there.keys()
    needed = _names(into / REQUIREMENTS) | (there.keys() - candidates) - {_LIBRARY}
    reached = {_LIBRARY}
    while new := needed - reached:
        reached |= new
        needed |= {name for each in new & there.keys() for name in _wanted_by(there[each])}
    for name in candidates - needed:
        _remove(there[name], into)


def _remove(one: Distribution, into: Path) -> None:
    for top in {file.parts[0] for file in one.files or ()} - {".."}:
        path = into / top
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _wanted_by(one: Distribution) -> set[str]:
    # Whatever the marker: one package too many costs less than one that is missing.
    return {_plain(found[0]) for each in one.requires or () if (found := _NAME.match(each))}


def _names(requirements: Path) -> set[str]:
    text = requirements.read_text(encoding="utf-8") if requirements.exists() else ""
    return {_plain(name) for name in _NAME.findall(text)}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
