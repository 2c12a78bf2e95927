"""`python -m lowkiq_lambda.stack.packaging`: what `lowkiq stack build` does, with the standard library alone."""

import argparse
import sys
from pathlib import Path

from lowkiq_lambda.stack.packaging.build import LOCKS, build
from lowkiq_lambda.stack.packaging.targets import BuildFailed, BuildTarget


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(
        prog="python -m lowkiq_lambda.stack.packaging", description="Put the package of a Lambda function together."
    )
    parser.add_argument("function", help=" or ".join(LOCKS))
    parser.add_argument("target", help="a runtime and an architecture, such as python3.13-arm64")
    parser.add_argument("into", type=Path, help="the folder to fill")
    parser.add_argument("--app", type=Path, help="the folder of the app (default: the current one)")
    parser.add_argument("--template", type=Path, help="that of the function (default: the project's)")
    options = parser.parse_args()
    try:
        warnings = build(
            options.function, BuildTarget.named(options.target), options.into, options.app, options.template
        )
    except BuildFailed as error:
        sys.exit(f"{options.function}: {error}")
    # On standard output, as `sam build` shows the other one only when the build fails.
    sys.stdout.write("".join(f"{sentence}\n" for sentence in warnings))


if __name__ == "__main__":
    main()
