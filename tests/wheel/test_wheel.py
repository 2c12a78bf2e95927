"""The wheel: all of the checkout, small, and the same to those who run it and to those who read its public names."""

import ast
import json
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from typing import Any, Final
from zipfile import ZipFile

import pytest

import lowkiq_lambda
from lowkiq_lambda.dashboard.template_build import TEMPLATES
from lowkiq_lambda.stack.bundles import FOLDERS
from lowkiq_lambda.store.shard.keys import FEATURES
from lowkiq_lambda.store.shard.scripts import Linker
from tests.kit.installed import build_wheel

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text()
PACKAGE: Final = Path(lowkiq_lambda.__file__).parent
LOCKS: Final = [f"requirements/{name}.txt" for name in ("cloud", "dashboard-function", "drain-function")]
STACK: Final = "lowkiq_lambda/stack/scaffold/stack.json.xz"

MOST_BYTES = 1_500_000
"""Of the wheel."""

HOOK: Final[dict[str, Any]] = run_path(str(ROOT / "hatch_wheel.py"))


def in_git(*paths: str) -> list[str]:
    """The files of these folders that are in git, or would be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *paths]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if (ROOT / name).exists()]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that an installation of it adds to those that Python imports from."""
    folder = tmp_path_factory.mktemp("installed")
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_a_wheel_holds_the_whole_package(installed: Path) -> None:
    """What is installed has every module, script and piece of data, the marker that it is typed, and the stack."""
    package = installed / "lowkiq_lambda"
    packed = {path.relative_to(installed).as_posix() for path in package.rglob("*") if path.is_file()}
    for name in FOLDERS:
        bundle = f"lowkiq_lambda/{name}.json"
        packed |= {f"lowkiq_lambda/{name}/{path}" for path in json.loads((installed / bundle).read_text())}
        packed.remove(bundle)
    stack = json.loads(lzma.decompress((installed / STACK).read_bytes()))

    assert "lowkiq_lambda/py.typed" in packed
    assert {*in_git("lowkiq_lambda"), STACK} == packed
    # Manifests of Kubernetes are for whoever reads them, and no project has copies.
    shipped = (name for name in in_git("template.yaml", "infra", *LOCKS) if not name.startswith("infra/kubernetes/"))
    assert {name for name in shipped if not name.endswith(".md")} == {*stack}
    assert {name: (ROOT / name).read_text() for name in stack} == stack
    assert {path.name: path.read_text() for path in TEMPLATES.iterdir()} == json.loads(
        (package / "dashboard" / "templates.json").read_text()
    )


def test_a_wheel_is_small(wheel: Path) -> None:
    """Whoever installs it, or packs it into a container, downloads that much."""
    assert wheel.stat().st_size <= MOST_BYTES


@pytest.mark.nightly("each check builds one, whose order and times the builder sets")
def test_two_builds_are_equal(wheel: Path, tmp_path: Path) -> None:
    """Whoever builds the same source has the same bytes to compare."""
    assert wheel.read_bytes() == build_wheel(tmp_path).read_bytes()


def test_servers_are_sent_the_same_scripts(installed: Path) -> None:
    """From the one file of the wheel as from the folder, so that mixed processes share a cache; without comments."""
    names = [path.stem for path in PACKAGE.glob("store/lua/*/*.lua") if path.parent.name != "include"]
    sets = [(), *((feature,) for feature in FEATURES), tuple(FEATURES)]
    of_wheel, of_checkout = (
        {(name, each): linker.script(name, each).source for name in names for each in sets}
        for linker in (Linker(installed / "lowkiq_lambda" / "store" / "lua"), Linker(PACKAGE / "store" / "lua"))
    )

    assert of_checkout == of_wheel
    assert "-- " not in of_checkout["settle", ()]
    assert not (installed / "lowkiq_lambda/store/lua").exists()


def test_each_module_runs_as_in_the_checkout(installed: Path) -> None:
    """It is the same but for docstrings, and each statement is in the same line, as tracebacks say it."""
    differing = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if without_docstrings(path) != without_docstrings(installed / path.relative_to(PACKAGE.parent))
    ]

    assert [] == differing


def without_docstrings(path: Path) -> list[object]:
    """Its nodes but docstrings, in their order: what each is, and where it begins."""
    return [*nodes(ast.parse(path.read_text()))]


def nodes(node: ast.AST) -> Iterator[object]:
    """Of this one and those below it."""
    yield type(node).__name__, getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    for _, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from () if is_docstring(each) else nodes(each)
            else:
                yield each


def is_docstring(node: ast.AST) -> bool:
    """Whether it is a statement of nothing but a text."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def test_internal_modules_have_neither_comments_nor_docstrings() -> None:
    """But for docstrings that are read at run time, or that keep a class from making its own."""
    source = '''"""Module."""

# A comment.
A = "# no comment"  # one
"""Of an attribute,
in two lines."""


class Refused(Exception):
    """Its message."""


@dataclass
class Point:
    """As it is."""

    x: int
    """To the right."""


def area(point):
    """Of a point."""
    return 0


def _edge(point):
    """Of a point, too."""
    return 0
'''
    lines = ["", "", "", 'A = "# no comment"', "", "", "", "", "class Refused(Exception):", '    """Its message."""']
    lines += ["", "", "@dataclass", "class Point:", '    """As it is."""', "", "    x: int", "", "", ""]
    lines += ["def area(point):", "", "    return 0", "", "", "def _edge(point):", "", "    return 0", ""]

    assert lines == HOOK["bare"](source, keeps_docstrings=False).split("\n")
    module, package = (HOOK["bare"](source, keeps_docstrings=True, is_package=each) for each in (False, True))
    assert source.replace('    """Of a point, too."""', "").count('"""') == package.count('"""')
    assert package.replace('"""Module."""', "").count('"""') == module.count('"""')


def test_people_read_the_same(installed: Path) -> None:
    """What editors, `--help`, the OpenAPI document and errors say: hatch_wheel.py lists the modules that it is from."""
    of_wheel, of_checkout = (printed(path, "-m", "tests.wheel.words") for path in (installed, ROOT))

    assert str(installed / "lowkiq_lambda") == of_wheel.pop("from")
    assert str(PACKAGE) == of_checkout.pop("from")
    assert {*of_checkout["docstrings"].items()} == {*of_wheel["docstrings"].items()}
    assert of_checkout == of_wheel
    assert len(of_checkout["docstrings"]) > 1_000


def test_a_project_has_the_stack_of_the_checkout(installed: Path) -> None:
    """`lowkiq new` and builds take it from the wheel, by a copy that ends with the process."""
    code = """if True:
        import json
        from lowkiq_lambda.stack.scaffold.owned import lock_file, stack_files, stack_folder
        print(json.dumps([stack_files(), lock_file("cloud").read_text(), str(stack_folder())]))
    """
    *of_wheel, copy = printed(installed, "-c", code)
    *of_checkout, folder = printed(ROOT, "-c", code)

    assert of_checkout == of_wheel
    assert str(ROOT) == folder
    assert not Path(copy).exists()


def printed(package: Path, *arguments: str) -> Any:
    """What a Python prints that imports the package from that folder, and the tests from here."""
    environment = os.environ | {"PYTHONPATH": f"{package}{os.pathsep}{ROOT}", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=package, env=environment, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


def rendered(markdown: str) -> str:
    """The page that an index of packages makes of a description: by its own renderer, which refuses what is unsafe."""
    code = "import sys; from readme_renderer.markdown import render; print(render(sys.stdin.read()))"
    done = subprocess.run(
        [ROOT / ".tools" / "dist" / "bin" / "python", "-W", "error", "-c", code],
        input=markdown,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def test_an_index_shows_a_description_without_a_dead_link(wheel: Path) -> None:
    """No link and no picture of it is relative, and nothing else of the README is lost."""
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        _, _, description = archive.read(name).decode().partition("\n\n")
    page = rendered(description)

    assert {"https://github.com/bia-technologies/lowkiq"} == {*re.findall(r'(?:href|src)="([^#][^"]*)"', page)}
    assert "when not to use it" in page
    assert page.count("<h2") == len(re.findall(r"^## ", README, re.MULTILINE))
    assert page.count("<pre") == README.count("\n```") // 2


def test_an_address_makes_the_links_of_the_description_absolute() -> None:
    """Each file has its place there; pictures are asked for as such."""
    described = run_path(str(ROOT / "hatch_build.py"))["described"]
    text = "![a](b.svg) [c](d.md#e), [f](https://g.example)"
    there = described(text, "1.2", "https://host.example/{kind}/v{version}/{path}")

    at = "https://host.example"
    assert f"![a]({at}/raw/v1.2/b.svg) [c]({at}/blob/v1.2/d.md#e), [f](https://g.example)" == there
