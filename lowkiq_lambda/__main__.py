"""`python -m lowkiq_lambda` is the command `lowkiq`."""

import sys

from lowkiq_lambda.cli import main

if __name__ == "__main__":
    sys.exit(main())
