"""`python -m lowkiq_lambda.audit` is `lowkiq audit`."""

import sys

from lowkiq_lambda.cli import main

if __name__ == "__main__":
    sys.exit(main(["audit", *sys.argv[1:]]))
