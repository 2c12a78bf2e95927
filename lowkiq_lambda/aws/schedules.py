"""`python -m lowkiq_lambda.aws.schedules` is `lowkiq drain-schedules`."""

import sys

from lowkiq_lambda.cli import main

if __name__ == "__main__":
    sys.exit(main(program="python -m lowkiq_lambda.aws.schedules"))
