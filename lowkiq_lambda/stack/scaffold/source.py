"""Where the templates, the Makefiles and the locks of the stack lie: in the wheel, or in the checkout."""

from pathlib import Path
from typing import Final

_PACKED: Final = Path(__file__).parent / "stack"
_CHECKOUT: Final = Path(__file__).parents[3]


def stack_folder() -> Path:
    """The folder with template.yaml, infra/ and requirements/."""
    return _PACKED if _PACKED.exists() else _CHECKOUT


def lock_file(name: str) -> Path:
    """The lock of that name: such as drain-function, or cloud."""
    return stack_folder() / "requirements" / f"{name}.txt"
