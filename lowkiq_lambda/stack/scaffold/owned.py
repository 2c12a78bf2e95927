"""Files of a project that belong to lowkiq_lambda: their source, their place, and whether people edited them."""

import atexit
import json
import re
import shutil
import tempfile
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.stack.bundles import STACK

_HEADER: Final = """\
# Do not edit: this file belongs to lowkiq_lambda, and `lowkiq upgrade` replaces it.
# lowkiq_lambda {version}, sha256 {digest}
"""
_SIGNED: Final = re.compile(
    r"\A# Do not edit[^\n]*\n# lowkiq_lambda \S+, sha256 (?P<digest>[0-9a-f]{64})\n(?P<body>.*)\Z", re.DOTALL
)

FOLDER: Final = "lowkiq"
"""Of the stack, in the project."""
TEMPLATE: Final = "template.yaml"

# In the checkout the folder of the app lies beside the template, and in a project beside the template's folder.
_CODE: Final = re.compile(r"^(?P<key> +(?:CodeUri|Default): )app/$", re.MULTILINE)
_VERSION: Final = re.compile(r'^ +LOWKIQ_STACK_VERSION: "?(?P<version>\d+)"?$', re.MULTILINE)

_PACKED: Final = Path(__file__).with_name("stack.json.xz")
"""Of the wheel (hatch_wheel.py), which has no checkout around it."""
_CHECKOUT: Final = Path(__file__).parents[3]


class Signature(NamedTuple):
    """What the header of a file says, and what is below it."""

    digest: str
    body: str

    @property
    def is_untouched(self) -> bool:
        """Whether the file is as it was written."""
        return self.digest == _digest(self.body)


def sign(body: str) -> str:
    """The text of an owned file: a header, and the body as it is."""
    return _HEADER.format(version=own_version(), digest=_digest(body)) + body


def signature(text: str) -> Signature | None:
    """The header of a file; None if it has none."""
    match = _SIGNED.match(text)
    return match and Signature(match["digest"], match["body"])


def own_version() -> str:
    """The version of the library that is installed."""
    return version("lowkiq-lambda")


def _digest(body: str) -> str:
    return sha256(body.encode()).hexdigest()


def stack_files() -> dict[str, str]:
    """The text of each file, by its path in the project."""
    source = stack_folder()
    files = {}
    for path in [path for pattern in STACK for path in sorted(source.glob(pattern))]:
        text = path.read_text(encoding="utf-8")
        name = PurePosixPath(path.relative_to(source).as_posix())
        files[str(FOLDER / name)] = sign(_CODE.sub(r"\g<key>../app/", text))
    return files


def stack_version(template: Path) -> int | None:
    """The version that a template says that it is of; None for one that says nothing, as a template of yours."""
    match = _VERSION.search(template.read_text(encoding="utf-8"))
    return int(match["version"]) if match else None


def outdated(template: Path) -> str | None:
    """A sentence, where the template is of an older stack than the library's own."""
    version, current = stack_version(template), stack_version(stack_folder() / TEMPLATE)
    if version is None or current is None or version >= current:
        return None
    return (
        f"{template} is of stack version {version}, and this lowkiq_lambda needs {current}: run `lowkiq upgrade` in "
        "the project's folder."
    )


@cache
def stack_folder() -> Path:
    """The folder with template.yaml, infra/ and requirements/: of a wheel, a copy for this process."""
    if not _PACKED.exists():
        return _CHECKOUT
    folder = Path(tempfile.mkdtemp(prefix="lowkiq-stack-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, text in _unpacked().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _unpacked() -> dict[str, str]:
    try:
        import lzma  # noqa: PLC0415 - a Python may have been built without it, and only the wheel needs it
    except ImportError as error:
        raise ConfigError(
            "The stack's files are packed, and this Python was built without lzma: use one with it."
        ) from error
    texts: dict[str, str] = json.loads(lzma.decompress(_PACKED.read_bytes()))
    return texts


def lock_file(name: str) -> Path:
    """The lock of that name: such as drain-function, or cloud."""
    return stack_folder() / "requirements" / f"{name}.txt"
