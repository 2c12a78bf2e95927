"""`python -m tests.wheel.words`: all that people read of the package that is imported, as JSON.

The docstrings of public names, of their members and of what these return; the messages of errors; the OpenAPI document;
and the pages that are made of the command line's help, of errors and of settings.
"""

import ast
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Final

import lowkiq_lambda
from lint.reference.pages import text_of
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.api.openapi import description
from lowkiq_lambda.dashboard.api.routes import OPERATIONS
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.operate.queue_operations import QueueOperations
from tests.kit.public_names import DOCS, listed, members

_NAMED: Final = re.compile(r"^from (lowkiq_lambda[\w.]*) import (.+)$|^::: (lowkiq_lambda[a-z_.]*\.\w+)$", re.MULTILINE)


def public() -> Iterator[object]:
    """What the docs name: in lists of public names, in the reference, and in examples."""
    yield from (Operations, QueueOperations, lowkiq_lambda.Lowkiq)
    for of, names in listed().items():
        if of.startswith("`lowkiq_lambda"):
            yield from (getattr(import_module(of.strip("`")), name) for name in names)
    for page in sorted(DOCS.rglob("*.md")):
        for module, names, path in _NAMED.findall(page.read_text()):
            yield from (pkgutil.resolve_name(f"{module}.{name}") for name in re.findall(r"\w+", names))
            yield from (pkgutil.resolve_name(each) for each in [path] if each)


def docstrings(one: object, *, also_returned: bool = True) -> Iterator[tuple[str, str | None]]:
    """Of this, and if it is a class, of its members and of the classes that these return, with names."""
    yield str(getattr(one, "__name__", one)), inspect.getdoc(one)
    if not inspect.isclass(one):
        return
    for name in members(one):
        member = inspect.getattr_static(one, name)
        yield f"{one.__qualname__}.{name}", inspect.getdoc(member)
        function = member.fget if isinstance(member, property) else member
        for kind in returned(function) if also_returned and inspect.isfunction(function) else ():
            yield from docstrings(kind, also_returned=False)


def returned(function: object) -> Iterator[type]:
    """The classes of ours that its annotation names."""
    module = inspect.getmodule(function)
    assert module
    for name in re.findall(r"\w+", str(inspect.get_annotations(function).get("return", ""))):  # type: ignore[arg-type]  # a function
        kind = getattr(import_module(places(module).get(name, module.__name__)), name, None)
        if inspect.isclass(kind) and kind.__module__.startswith("lowkiq_lambda"):
            yield kind


@cache
def places(module: ModuleType) -> dict[str, str]:
    """The modules of the names that it imports, also for type checkers alone."""
    nodes = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in nodes for alias in node.names if node.module}


def errors() -> dict[str, str | None]:
    """The docstrings of all errors: some are messages."""
    for module in pkgutil.walk_packages(lowkiq_lambda.__path__, "lowkiq_lambda."):
        # Django's need its settings, and the emulator's are of another environment.
        if not re.search(r"\.__main__$|\.contrib\.django\.|\.cloud\.inside\.", module.name):
            import_module(module.name)
    kinds = [LowkiqError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {kind.__qualname__: kind.__doc__ for kind in kinds}


if __name__ == "__main__":
    words = dict(pair for one in public() for pair in docstrings(one))
    pages = {name: text_of(name) for name in ("cli.md", "errors.md", "settings.md")}
    found = {"docstrings": words, "errors": errors(), "openapi": description(OPERATIONS), "pages": pages}
    json.dump({"from": lowkiq_lambda.__path__[0], **found}, sys.stdout)
