"""The wheel: many small texts as one file, the stack as one archive, and modules without what only their authors read.

What is left out lies in the source archive. Lines keep their numbers, so that a traceback names the line there.
"""

import ast
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGE: Final = "lowkiq_lambda"

_TEXT_OR_COMMENT: Final = re.compile(
    r"""(?P<long>\"{3}|'{3})(?:\\.|.)*?(?P=long)|(?P<short>["'])(?:\\.|.)*?(?P=short)|(?P<comment>[ ]*\#[^\n]*)""",
    re.DOTALL,
)

INTERNAL: Final[Mapping[str, Sequence[str]]] = {
    "aws": ["sqs_inbox"],
    "base": ["errors."],
    "cli": [],
    "contrib/checking": [],
    "contrib/django": ["commit", "installed", "tasks"],
    "contrib/otel": ["instrumenting"],
    "dashboard": [
        "__init__",
        "api/",
        "app",
        "moving",
        "saved_views",
        "security/auth",
        "security/claims",
        "security/passwords",
        "security/sessions",
        "security/settings",
        "tasks_api",
    ],
    "declare": ["error_rules", "options", "pushable", "worker"],
    "duties": ["runner"],
    "engine": ["batch", "iteration."],
    "iterate/keys": [],
    "jobs/cursor_values": [],
    "jobs/headers": [],
    "local": ["daemon", "splitters"],
    "operate/acts": ["bulk_progress", "editing", "replaying", "requeueing", "undoing"],
    "operate/alerts": [],
    "operate/auto": ["queue_auto"],
    "operate/doctor": [],
    "operate/gauges": [],
    "operate/inspect": ["limits", "processes"],
    "operate/lateness": [],
    "operate/presentation": [
        "changed_leaves",
        "diagnosis.",
        "errors",
        "jobs",
        "limits",
        "pages",
        "queues",
        "runs",
        "schedules",
        "tasks",
        "tenants",
    ],
    "operate/queue_parts": [],
    "operate/verify": ["verifier"],
    "providers": ["aws/iam"],
    "push": ["remote"],
    "reshard": ["resharding"],
    "schedules": ["entry", "records", "run_time", "schedules", "waves"],
    "settings": ["aws", "config", "protocols"],
    "simulate": ["choice", "running", "times", "trace"],
    "stack": [],
    "store": ["shard/duty_claims", "shard/entries", "shard/limiting"],
    "tasks": ["making", "task", "views"],
    "testing/crashes": [],
    "testing/fuzz": ["oracle", "recording", "report"],
    "testing/pytest_plugin": [],
}
"""Rooms, and single modules, without docstrings in the wheel, but for paths that begin with one of these: what the docs
name, what its methods return, and what the OpenAPI document is made of."""


class Wheel(BuildHookInterface[Any]):
    """Puts changed files in the place of those that were chosen; an editable install has those of the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make them, in a folder that lasts until they are packed."""
        if version != "standard":
            return
        self._folder = TemporaryDirectory()
        chosen = [Path(file.path) for file in self.build_config.builder.recurse_selected_project_files()]
        for place, content in _changed(Path(self.root), [path for path in chosen if path.suffix == ".py"]):
            path = Path(self._folder.name) / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            build_data["force_include"][str(path)] = place

    def finalize(self, version: str, _build_data: dict[str, Any], artifact: str) -> None:
        """Pack the files more tightly, and remove the folder."""
        if version == "standard":
            self._folder.cleanup()
            _tighten(Path(artifact))


class _Tight:
    """A compressor for zipfile that waits for all of a file, and then takes its time: it saves 3 %."""

    def __init__(self) -> None:
        self._parts = list[bytes]()

    def compress(self, part: bytes) -> bytes:
        self._parts.append(bytes(part))
        return b""

    def flush(self) -> bytes:
        import deflate  # noqa: PLC0415 - an editable install needs none

        return bytes(deflate.deflate_compress(b"".join(self._parts), 12))


def _tighten(wheel: Path) -> None:
    tight = wheel.with_suffix(".tight")
    with ZipFile(wheel) as loose, ZipFile(tight, "w") as archive:
        for each in loose.infolist():
            content = loose.read(each)
            with archive.open(each, "w") as file:
                if each.compress_type == ZIP_DEFLATED:
                    # The standard library has no other way to bring a compressor of one's own.
                    file._compressor = _Tight()  # type: ignore[attr-defined]  # noqa: SLF001 - as said
                file.write(content)
    tight.replace(wheel)


def _changed(root: Path, modules: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """What the wheel has at which place."""
    bundles = run_path(str(root / _PACKAGE / "stack" / "bundles.py"))
    bundled: Callable[..., str] = bundles["bundled"]
    for path in modules:
        place = path.relative_to(root / _PACKAGE).as_posix()
        is_package = path.name == "__init__.py"
        text = bare(path.read_text(encoding="utf-8"), keeps_docstrings=keeps_docstrings(place), is_package=is_package)
        yield f"{_PACKAGE}/{place}", text.encode()
    for name, pattern in bundles["FOLDERS"].items():
        yield f"{_PACKAGE}/{name}.json", bundled(root / _PACKAGE / name, pattern).encode()
    stack = bundled(root, *bundles["STACK"], *bundles["LOCKS"])
    yield f"{_PACKAGE}/stack/scaffold/stack.json.xz", lzma.compress(stack.encode(), preset=9 | lzma.PRESET_EXTREME)


def keeps_docstrings(place: str) -> bool:
    """Whether the module at that place of the package does."""
    shown = [
        tuple(f"{room}/{name}" for name in names)
        for room, names in INTERNAL.items()
        if place.startswith((f"{room}/", f"{room}.py"))
    ]
    return not shown or place.startswith(shown[0])


def bare(source: str, *, keeps_docstrings: bool, is_package: bool = False) -> str:
    """The module without comments and without docstrings, those of attributes too; each line keeps its number.

    Where docstrings are kept, names that begin with an underscore have none all the same, as no help shows them, nor
    has a module that is no package, as its names are imported from one. A class without more keeps its own: that of an
    error may be its message. So does one with a decorator: a dataclass would make itself another one with each import.
    """
    text = _TEXT_OR_COMMENT.sub(lambda match: "" if match["comment"] else match[0], source)
    lines = text.splitlines()
    tree = ast.parse(source)
    for statement in docstrings(tree, lambda owner: not (keeps_docstrings and _is_shown(owner, is_package=is_package))):
        last = statement.end_lineno or statement.lineno
        lines[statement.lineno - 1 : last] = [""] * (last - statement.lineno + 1)
    return "\n".join([*lines, ""])


def docstrings(tree: ast.Module, may_go: Callable[[ast.AST], bool]) -> Iterator[ast.stmt]:
    """Those of nodes that need none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            is_alone = len(node.body) == 1 and not isinstance(node, ast.Module)
            is_needed = is_alone or (isinstance(node, ast.ClassDef) and node.decorator_list)
            owners: list[ast.AST] = [node, *node.body]
            for owner, statement in list(zip(owners, node.body, strict=False))[1 if is_needed else 0 :]:
                if _is_docstring(statement) and may_go(owner):
                    yield statement


def _is_shown(owner: ast.AST, *, is_package: bool) -> bool:
    match owner:
        case ast.Module():
            return is_package
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return not re.match("_(?!_)", name)
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return not re.match(r"(self\.)?_(?!_)", ast.unparse(target))
    return True


def _is_docstring(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False
