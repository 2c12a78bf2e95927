"""Takes out of a package the parts of Powertools that answer HTTP requests and parse models: none of ours uses them."""

import shutil
from pathlib import Path
from typing import Final

_PARTS: Final = ("event_handler", "utilities/auth_alpha", "utilities/parser")
_NEEDED_BY: Final = "pydantic"
"""With models the parser is of use, and the logger turns them into JSON by a part of what answers requests."""


def thin_out(into: Path) -> None:
    """Remove them from the package in that folder, unless the app has brought pydantic."""
    if (into / _NEEDED_BY).exists():
        return
    for part in _PARTS:
        shutil.rmtree(into / "aws_lambda_powertools" / part, ignore_errors=True)
