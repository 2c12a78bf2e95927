"""`python -m lowkiq_lambda.stack.scaffold NAME`: `lowkiq new` where only the standard library is installed."""

import argparse
import sys
from collections.abc import Sequence

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.stack.scaffold.write import Web, new_project, next_steps


def main(words: Sequence[str] | None = None, program: str = "python -m lowkiq_lambda.stack.scaffold") -> int:
    """Read the command line and write the project; the exit code."""
    parser = argparse.ArgumentParser(prog=program, description="Write a new project, in a folder of its name.")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--web", type=Web, choices=[*Web], default=Web.NONE, help="the web app that it comes with")
    options = parser.parse_args(words)
    try:
        files = new_project(options.name, options.web)
    except LowkiqError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(next_steps(options.name, files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
