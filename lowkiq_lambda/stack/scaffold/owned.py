"""Files of a project that belong to lowkiq_lambda: their source, their place, and whether people edited them."""

import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

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

_PACKED: Final = Path(__file__).parent / "stack"
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
    for path in _paths(source):
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


def _paths(source: Path) -> Iterator[Path]:
    yield source / TEMPLATE
    yield from sorted((source / "infra").glob("*.yaml"))
    for pattern in ("package/*/Makefile", "terraform/*.tf", "cdk/*.py"):
        yield from sorted((source / "infra").glob(pattern))


def stack_folder() -> Path:
    """The folder with template.yaml, infra/ and requirements/."""
    return _PACKED if _PACKED.exists() else _CHECKOUT


def lock_file(name: str) -> Path:
    """The lock of that name: such as drain-function, or cloud."""
    return stack_folder() / "requirements" / f"{name}.txt"
