"""The house: no two packages import each other, over all imports, and only what stands above the app knows it.

All imports count: those in functions and those for types alone, too. `python -m tests.test_rooms` prints the figures.
"""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "lowkiq_lambda"
KNOW_THE_APP: Final = {"aws", "local", "dashboard", "cli", "contrib", "testing"}
"""The rooms that may import the app; the package's own `__init__` names it for users."""
FULL: Final = 60
"""Lines of a module that may have a single importer: a smaller one is a part of that importer's idea."""
SMALL_FOR_A_REASON: Final = {
    "aws.collector": "it acts when it is imported, before the other imports of a function",
    "declare.declared_times": "imported lazily: few workers have jobs that expire, or runs with a limit",
    "engine.overdue": "imported lazily: few queues have jobs that expire",
    "jobs.pydantic_schema": "Pydantic asks for it, where there is one",
    "push.threads": "imported lazily: it needs asyncio",
    "schedules.explanation": "imported lazily: few processes explain an expression, and those that fire never do",
    "store.server.cluster": "imported lazily: few apps have a cluster, and the client of redis-py for one is large",
}
Arrows: TypeAlias = Mapping[str, set[str]]


@cache
def modules() -> dict[str, Path]:
    """Each module of the package by its name."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def arrows() -> dict[str, set[str]]:
    """The modules that each module imports, wherever in its text."""
    return {name: {*_imported(path)} - {name} for name, path in modules().items()}


def _imported(path: Path) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [
                full if (full := f"{node.module}.{alias.name}") in modules() else node.module for alias in node.names
            ]
        else:
            continue
        yield from (name for name in names if name in modules())


def children(arrows_: Arrows, package: str) -> dict[str, set[str]]:
    """The arrows between what lies in a package: its files, and its packages as one each.

    A program (`__main__`) is nobody's part: nothing can import it.
    """
    found: dict[str, set[str]] = {}
    for name, targets in arrows_.items():
        for target in targets:
            ends = [_child(each, package) for each in (name, target)]
            if None not in ends and ends[0] != ends[1]:
                found.setdefault(str(ends[0]), set()).add(str(ends[1]))
    return found


def _child(name: str, package: str) -> str | None:
    if name.endswith(".__main__"):
        return name
    if not name.startswith(f"{package}."):
        return None
    return name[len(package) + 1 :].split(".", maxsplit=1)[0]


def circles(arrows_: Arrows) -> list[list[str]]:
    """The sets of those that reach each other, the largest first (Tarjan's components of more than one)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = lowest[name] = len(index)
        stack.append(name)
        for target in arrows_.get(name, ()):
            if target not in index:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], index[target])
        if lowest[name] == index[name]:
            cut = stack.index(name)
            found.append(sorted(stack[cut:]))
            del stack[cut:]

    for name in arrows_:
        if name not in index:
            visit(name)
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def test_the_largest_circle_of_files_is_two() -> None:
    """A file can be read with what it imports, and no other imports it back; two files may be one story."""
    assert [] == [circle for circle in circles(arrows()) if len(circle) > 2]


def test_no_two_packages_import_each_other() -> None:
    """In the package and in each of its packages, the arrows between the packages have one direction."""
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    found = {
        package: [circle for circle in circles(children(arrows(), package)) if _has_package(circle, package)]
        for package in sorted(packages)
    }

    assert {} == {package: wrong for package, wrong in found.items() if wrong}


def _has_package(circle: list[str], package: str) -> bool:
    return any(modules().get(f"{package}.{name}", Path()).name == "__init__.py" for name in circle)


def test_only_what_stands_above_the_app_knows_it() -> None:
    """Code below takes a Core, so that each part can be read, tested and used without the face."""
    app = f"{PACKAGE}.app"
    rooms = {name.split(".")[1] for name, targets in arrows().items() if app in targets and name != PACKAGE}

    assert rooms - KNOW_THE_APP == set()


def test_four_files_lie_at_the_top() -> None:
    """A line belongs into a room."""
    assert ["__init__", "__main__", "app", "core"] == sorted(path.stem for path in (ROOT / PACKAGE).glob("*.py"))


def test_no_tiny_module_has_a_single_importer_in_its_own_package() -> None:
    """A file is a whole idea: a short module that one neighbour alone uses is a part of that neighbour.

    The face of a package (`__init__`) is no neighbour: it gives names to those who import from outside.
    """
    assert [] == [name for name in _tiny() if name not in SMALL_FOR_A_REASON]


def test_the_reasons_for_small_modules_are_of_small_modules() -> None:
    """A module that grew, or got a second user, needs no reason any more."""
    assert {*SMALL_FOR_A_REASON} <= {*_tiny()}


def _tiny() -> list[str]:
    """Short modules with exactly one importer, of the same package; without the package's name."""
    importers: dict[str, set[str]] = {}
    for name, targets in arrows().items():
        for target in targets:
            importers.setdefault(target, set()).add(name)
    return [
        name.removeprefix(f"{PACKAGE}.")
        for name, path in modules().items()
        if path.stem not in {"__init__", "__main__"}
        and len(path.read_text().splitlines()) < FULL
        and len(importers.get(name, ())) == 1
        and {_neighbourhood(each) for each in importers[name]} == {name.rpartition(".")[0]}
    ]


def _neighbourhood(name: str) -> str:
    """The package that a file lies in; of a package's face none."""
    return "" if modules()[name].name == "__init__.py" else name.rpartition(".")[0]


def figures() -> str:
    """How many modules, rooms and arrows there are."""
    rooms: dict[str, set[str]] = {}
    for name, targets in arrows().items():
        for target in targets:
            ends = [_room(each) for each in (name, target)]
            if ends[0] != ends[1]:
                rooms.setdefault(ends[0], set()).add(ends[1])
    names = {_room(name) for name in modules()}
    largest = max(map(len, circles(arrows())), default=1)
    return (
        f"{len(modules())} modules, {sum(map(len, arrows().values()))} imports, {len(names)} rooms, "
        f"{sum(map(len, rooms.values()))} arrows between rooms, largest circle of files: {largest}"
    )


def _room(name: str) -> str:
    return name if modules()[name].name == "__init__.py" else name.rpartition(".")[0]


if __name__ == "__main__":
    print(figures())  # noqa: T201 - the figures are what it is run for
