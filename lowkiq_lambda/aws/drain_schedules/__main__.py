"""The command line that brings schedules in line with the code: `python -m lowkiq_lambda.aws.drain_schedules`."""

import os
import sys
import traceback

from lowkiq_lambda.aws.drain_schedules.arguments import INDEXES, parse
from lowkiq_lambda.aws.drain_schedules.command import FAILED, MISUSED, follow, print_indexes
from lowkiq_lambda.errors import ConfigError, DeclarationError, LowkiqError
from lowkiq_lambda.loading import AppNotFound

_INTERRUPTED = 130


def main() -> int:
    """Run the command; its exit code."""
    arguments = parse(sys.argv[1:], os.environ)
    try:
        run = print_indexes if arguments.command == INDEXES else follow
        return run(arguments, os.environ)
    except KeyboardInterrupt:
        sys.stderr.write("Broken off: run the command again, it goes on from here.\n")
        return _INTERRUPTED
    except LowkiqError as error:
        if isinstance(error, AppNotFound) and error.__cause__:
            traceback.print_exception(error.__cause__)
        sys.stderr.write(f"error: {error}\n")
        return MISUSED if isinstance(error, AppNotFound | ConfigError | DeclarationError) else FAILED


if __name__ == "__main__":
    sys.exit(main())
