"""The packages of the functions hold what they need and nothing else, ready to be imported."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.aws.packages import HERE, MACHINE
from tests.kit.templates import FUNCTIONS

OTHER_MACHINE: Final = "x86_64" if MACHINE == "arm64" else "arm64"
OTHER_MINOR: Final = 13 if sys.version_info[1] == 12 else 12
HANDLERS: Final = {
    "DrainFunction": "lowkiq_lambda.aws.drain_function",
    "IngestFunction": "lowkiq_lambda.aws.ingest_function",
    "DashboardFunction": "lowkiq_lambda.aws.dashboard_function",
}
NOT_PACKED: Final = {"__main__.py", "cli", "local", "stack", "testing"}
# Of bytecode that nothing compares with its source: see PEP 552.
UNCHECKED_HASH: Final = 1
MOST_BYTES: Final = 25_000_000
pytestmark = [
    pytest.mark.xdist_group("packages"),
    pytest.mark.skipif(sys.platform != "linux", reason="a package holds what runs on Linux"),
]


class Built(NamedTuple):
    """What a build said, and what it left."""

    code: int
    said: str
    folder: Path

    def names(self, pattern: str) -> list[str]:
        """The names of the files that match."""
        return sorted(path.name for path in self.folder.rglob(pattern))


Build = Callable[..., Built]
OTHER_TARGETS: Final = (
    f"python3.{OTHER_MINOR}-{OTHER_MACHINE}",
    f"python3.{OTHER_MINOR}-{MACHINE}",
    HERE.replace(MACHINE, OTHER_MACHINE),
)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder like `app/`, to be filled."""
    return new_app(tmp_path)


def new_app(parent: Path) -> Path:
    """The same, for a build that several tests look at."""
    folder = parent / "app"
    folder.mkdir()
    (folder / "jobs.py").write_text("from lowkiq_lambda import Lowkiq\n\napp = Lowkiq()\n")
    return folder


@pytest.fixture
def build(app: Path) -> Build:
    """Builds the drain function's package with that app, for a target."""
    return partial(build_package, app)


def build_package(app: Path, target: str, **environment: str) -> Built:
    """Build the drain function's package beside the app, for a target."""
    into = app.parent / "package"
    shutil.rmtree(into, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "lowkiq_lambda",
        "stack",
        "build",
        "DrainFunction",
        target,
        str(into),
        "--app",
        str(app),
    ]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    return Built(done.returncode, done.stdout + done.stderr, into)


@pytest.fixture(scope="module")
def built_with_library(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The package of an app that is a package itself, and names the library among its requirements."""
    folder = tmp_path_factory.mktemp("with-library")
    app = new_app(folder)
    (app / "__init__.py").touch()
    (app / "requirements.txt").write_text(f"lowkiq-lambda @ {wheel.as_uri()}\n")
    return build_package(app, HERE)


@pytest.fixture(scope="module")
def built_for_another_python(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The package for another version of Python and another processor, on a machine that does not have them."""
    folder = tmp_path_factory.mktemp("another-python")
    app = new_app(folder)
    (app / "requirements.txt").write_text("markupsafe\n")
    return build_package(app, OTHER_TARGETS[0], PATH=str(folder), PYENV_ROOT=str(folder))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_package_imports_by_itself(packages: Path, function: str) -> None:
    """Handler and app come from the package, with nothing but Python beside it."""
    code = "import importlib, sys; sys.path[:0] = sys.argv[1:2]; [importlib.import_module(m) for m in sys.argv[2:]]"
    command = [sys._base_executable, "-I", "-S", "-c", code, packages / function, HANDLERS[function], "jobs"]  # type: ignore[attr-defined]  # of the interpreter, not of this environment

    done = subprocess.run(command, cwd=packages, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("function", ["DrainFunction", "IngestFunction"])
def test_only_the_dashboard_has_the_web(packages: Path, function: str) -> None:
    """What drains holds no page, no web framework, no SDK of the runtime, no daemon, no command, no kit for tests."""
    held = {path.name for path in (packages / function).iterdir()}
    library = {path.name for path in (packages / function / "lowkiq_lambda").iterdir()}
    entrances = {path.name for path in (packages / function / "lowkiq_lambda" / "aws").iterdir()}

    assert {"redis", "hiredis", "msgspec", "aws_lambda_powertools", "lowkiq_lambda", "jobs.py"} <= held
    assert set() == held & {"boto3", "botocore", "mangum", "starlette", "jinja2", "anyio", "aws_xray_sdk", "bin"}
    assert set() == library & {*NOT_PACKED, "dashboard"}
    assert "schedules.py" not in entrances
    assert {"mangum", "starlette", "jinja2"} <= {path.name for path in (packages / "DashboardFunction").iterdir()}


OF_EVENTS = ("batch", "data_classes", "kafka", "streaming")
"""Parts of Powertools."""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_cold_start_compiles(packages: Path, function: str) -> None:
    """Every module has bytecode of the runtime's version, which goes by no time and names the place on Lambda.

    In the drain function's package those of Powertools have none that read events, as handlers of jobs get no event.
    """
    folder = packages / function
    tag = f".cpython-3{sys.version_info[1]}.pyc"
    sources = {path.relative_to(folder) for path in folder.rglob("*.py")}
    compiled = {
        path.parent.parent.relative_to(folder) / path.name.replace(tag, ".py"): path.read_bytes()
        for path in folder.rglob("*.pyc")
    }

    of_events = {Path("aws_lambda_powertools/utilities", name) for name in OF_EVENTS}
    seldom = {path for path in sources if of_events & {*path.parents}}
    assert seldom
    assert sources - (seldom if function == "DrainFunction" else set()) == set(compiled)
    assert {UNCHECKED_HASH} == {int.from_bytes(bytecode[4:8], "little") for bytecode in compiled.values()}
    assert b"/var/task/jobs.py" in compiled[Path("jobs.py")]
    assert [] == [name for name, bytecode in compiled.items() if str(folder).encode() in bytecode]


def test_no_cold_start_compiles_a_template(packages: Path) -> None:
    """The dashboard's package has each template as a module, and takes it from there."""
    package = packages / "DashboardFunction"
    names = sorted(json.loads((package / "lowkiq_lambda/dashboard/templates.json").read_text()))
    code = """if True:
        import sys
        sys.path[:0] = sys.argv[1:2]
        from lowkiq_lambda.dashboard.rendering import templates
        print(*[templates().get_template(name).filename for name in sys.argv[2:]], sep="\\n")
    """
    command = [sys._base_executable, "-I", "-S", "-c", code, package, *names]  # type: ignore[attr-defined]  # as above

    found = subprocess.run(command, cwd=packages, capture_output=True, text=True, check=True).stdout.splitlines()

    assert len(names) == len(found) > 0
    assert {package / "lowkiq_lambda/dashboard/compiled"} == {Path(path).parent for path in found}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_package_is_small(packages: Path, function: str) -> None:
    """It has room under Lambda's limit of 250 MB, and takes little time to unpack."""
    size = sum(path.stat().st_size for path in (packages / function).rglob("*") if path.is_file())

    assert 0 < size < MOST_BYTES


def test_a_package_is_for_its_target_and_not_for_this_machine(built_for_another_python: Built) -> None:
    """What is native in it runs on the function's processor and Python, also what the app asked for."""
    assert_is_for_its_target(built_for_another_python)


@pytest.mark.nightly("the same without bytecode is part of each check")
def test_a_package_for_another_python_has_its_bytecode(build: Build, app: Path) -> None:
    """Where the machine that builds has that Python; the package is refused here all the same."""
    (app / "requirements.txt").write_text("markupsafe\n")

    built = build(OTHER_TARGETS[0])

    assert_is_for_its_target(built)
    assert_refused_here(built, OTHER_TARGETS[0])


def assert_is_for_its_target(built: Built) -> None:
    """All that is native in it is, the app's requirements are there, and their list is not."""
    assert 0 == built.code, built.said
    processor = {"arm64": "aarch64", "x86_64": "x86_64"}[OTHER_MACHINE]
    native = [path.name for path in built.folder.rglob("*.so")]
    assert 3 == len(native)
    assert [] == [name for name in native if f"cpython-3{OTHER_MINOR}-{processor}" not in name]
    assert (built.folder / "markupsafe").exists()
    assert [] == built.names("requirements.txt")


def test_an_app_that_is_a_package_keeps_its_name(built_with_library: Built) -> None:
    """What a producer imports as app.jobs is app.jobs in the function; the build says what to deploy it with."""
    built = built_with_library

    assert 0 == built.code, built.said
    assert {"__init__.py", "jobs.py"} == {path.name for path in (built.folder / "app").glob("*.py")}
    assert not (built.folder / "jobs.py").exists()
    # A line names the two parameters.
    parameters = f"Runtime={HERE.replace('-', ' Architecture=')}"
    assert f"Built for {parameters}: deploy with the same." in built.said.splitlines()


def test_a_library_of_the_requirements_gives_way(built_with_library: Built) -> None:
    """An app may name the package among its own: what goes in is the one that builds, without what Lambda lacks."""
    built = built_with_library

    assert 0 == built.code, built.said
    assert set() == {path.name for path in (built.folder / "lowkiq_lambda").iterdir()} & NOT_PACKED
    assert [] == built.names("lowkiq_lambda-*.dist-info")


def test_without_the_runtimes_python_there_is_no_bytecode(built_for_another_python: Built) -> None:
    """Another version's would be of no use; the build says what is missing, and goes on."""
    built = built_for_another_python

    assert 0 == built.code, built.said
    assert f"WARNING: no Python 3.{OTHER_MINOR} was found" in built.said
    assert [] == built.names("*.pyc")


def test_a_python_of_another_version_is_refused(build: Build) -> None:
    """The one that is named must be what the function runs on."""
    built = build(f"python3.{OTHER_MINOR}-{MACHINE}", LOWKIQ_BUILD_PYTHON=sys.executable)

    assert 0 != built.code
    assert f"is not a Python 3.{OTHER_MINOR}" in built.said


def test_an_app_does_not_take_a_packages_place(build: Build, app: Path) -> None:
    """A module of the app with the name of a package would break what imports the package."""
    (app / "msgspec").mkdir()

    built = build(HERE)

    assert 0 != built.code
    assert "The app's msgspec would take the place of a package" in built.said


def test_a_package_for_another_python_says_so(built_for_another_python: Built) -> None:
    """What was built for another Python is refused at its first import, with both names and the cure."""
    assert_refused_here(built_for_another_python, OTHER_TARGETS[0])


@pytest.mark.nightly("a package for another Python and processor is refused in each check")
@pytest.mark.parametrize("target", OTHER_TARGETS[1:])
def test_a_package_for_another_python_or_processor_says_so(build: Build, target: str) -> None:
    """As for both."""
    assert_refused_here(build(target), target)


def assert_refused_here(built: Built, target: str) -> None:
    """Its first import fails, and says which runtime it is for."""
    code = "import sys; sys.path[:0] = sys.argv[1:2]; import lowkiq_lambda.aws.drain_function"
    command = [sys._base_executable, "-I", "-S", "-c", code, built.folder]  # type: ignore[attr-defined]  # of the interpreter, not of this environment

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert f"ImportError: The package was built for {target} and the function runs {HERE}." in done.stderr
    assert "Give sam build and sam deploy the same Runtime and Architecture" in done.stderr


@pytest.mark.parametrize("target", ["python3.13", "python3.13-riscv", "nodejs-arm64"])
def test_a_target_that_there_is_not_is_refused(build: Build, target: str) -> None:
    """With a sentence that shows what one looks like."""
    built = build(target)

    assert 0 != built.code
    assert f"{target!r} names no runtime and architecture" in built.said
