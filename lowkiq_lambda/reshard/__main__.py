"""`python -m lowkiq_lambda.reshard` is `lowkiq reshard`."""

import sys

from lowkiq_lambda.cli import main

if __name__ == "__main__":
    sys.exit(main(program="python -m lowkiq_lambda.reshard"))
