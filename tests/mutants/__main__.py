"""`python -m tests.mutants [NAME ...]` tries the mutants; it ends with 1 if one survives, or does not fit any more."""

import sys

from tests.mutants.runner import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
