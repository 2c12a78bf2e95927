"""AWS on this machine: ministack in an environment of its own, its data gone when it stops.

Its functions are processes of its interpreter, which is why it has an environment apart: what a function imports
must come from the function's own package, and not from what the tests happen to have.
"""

import os
from pathlib import Path
from typing import Final

from lowkiq_lambda.stack.cloud.access import REGION
from lowkiq_lambda.stack.cloud.server import CloudServer

ACCOUNT: Final = "000000000000"

_PROGRAM: Final = Path(__file__).parents[3] / ".tools" / "cloud" / "bin" / "ministack"

__all__ = ["ACCOUNT", "REGION", "LocalCloud", "cloud_program"]


def cloud_program() -> Path:
    """The program that runs; `make setup` puts it there."""
    program = Path(os.environ.get("LOWKIQ_TEST_CLOUD") or _PROGRAM)
    assert program.exists(), f"there is no local cloud at {program}: run `make setup`"
    return program


class LocalCloud(CloudServer):
    """That of the tests."""

    def __init__(self, *, enforces_rights: bool = False) -> None:
        super().__init__(cloud_program(), enforces_rights=enforces_rights)
