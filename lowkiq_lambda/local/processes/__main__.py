"""`python -m lowkiq_lambda.local.processes MODULE:APP DESCRIPTOR`: a child; only a parent starts it."""

import sys

from lowkiq_lambda.local.processes.child import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
