"""In a package redis-py imports its asynchronous half when it is used, and is whole otherwise."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import hiredis
import pytest
import redis

from lowkiq_lambda.stack.packaging.lean import postpone
from tests.kit.examples import mostly_nightly
from tests.kit.servers import Server

LATER = ("asyncio", "email", "importlib.metadata", "redis.asyncio._everything", "redis.asyncio.client")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed redis-py, as a build leaves it."""
    folder = copied(tmp_path_factory.mktemp("package"))
    assert postpone(folder) is None
    return folder


def copied(folder: Path) -> Path:
    """The installed redis-py and hiredis, in that folder."""
    for module in (redis, hiredis):
        place = Path(*module.__path__)
        shutil.copytree(place, folder / place.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def said(package: Path, code: str, *arguments: str) -> list[str]:
    """What a process prints that has the package and nothing else."""
    program = f"import sys; sys.path.insert(0, {str(package)!r})\n{code}"
    command = [sys._base_executable, "-I", "-S", "-c", program, *arguments]  # type: ignore[attr-defined]  # of the interpreter, not of this environment
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout.splitlines()


def test_a_program_without_coroutines_imports_none_of_what_is_for_them(package: Path, server: Server) -> None:
    """Neither the import nor a command loads asyncio. Where redis-py has moved, the fixture fails."""
    code = """if True:
        import redis, redis.cluster, redis.sentinel
        # Our clients do not let redis-py read its own version either.
        print(redis.Redis.from_url(sys.argv[1], driver_info=redis.DriverInfo(lib_version=None)).ping())
        print(*{*sys.modules} & {*sys.argv[2:]})
    """

    assert ["True", ""] == said(package, code, server.url, *LATER)


@pytest.mark.parametrize(
    "get",
    mostly_nightly(
        [
            "import redis.asyncio; client = redis.asyncio.from_url(url)",
            "import redis; client = redis.asyncio.Redis.from_url(url)",
            "import redis; client = redis.asyncio.client.Redis.from_url(url)",
            "from redis.asyncio import Redis; client = Redis.from_url(url)",
            "from redis.asyncio import *; client = from_url(url)",
            "from redis.asyncio.client import Redis; client = Redis.from_url(url)",
            "from redis.asyncio import client as found; client = found.Redis.from_url(url)",
            "import redis.asyncio.cluster; client = redis.asyncio.Redis.from_url(url)",
        ],
        "import redis.asyncio; client = redis.asyncio.from_url(url)",
        "from redis.asyncio import Redis; client = Redis.from_url(url)",
        "from redis.asyncio import *; client = from_url(url)",
    ),
)
def test_a_handler_has_the_asynchronous_client(package: Path, server: Server, get: str) -> None:
    """However it is imported, it is the real one, and talks to a server."""
    code = f"""if True:
        url = sys.argv[1]
        {get}
        import asyncio
        async def ping():
            print(await client.ping())
            await client.aclose()
        asyncio.run(ping())
    """

    assert ["True"] == said(package, code, server.url)


def test_the_names_are_those_of_the_real_module(package: Path) -> None:
    """Each public name is found and is one object everywhere; another one is missing as in any module."""
    code = """if True:
        import json, redis
        print(json.dumps(sorted(redis.asyncio.__all__)))
        import redis.asyncio.client
        print(redis.asyncio.Redis is redis.asyncio.client.Redis)
        print(hasattr(redis.asyncio, "nobody"), hasattr(redis.asyncio, "__nobody__"))
    """

    names, *rest = said(package, code)

    assert sorted(redis.asyncio.__all__) == json.loads(names)
    assert ["True", "False False"] == rest


def test_a_program_imports_of_redis_what_it_uses(package: Path, server: Server) -> None:
    """A connection comes without the client and its commands; each other name brings them, as everywhere."""
    code = """if True:
        import json, redis.connection
        print("redis.client" in sys.modules)
        print(redis.__version__, redis.Redis is redis.client.Redis, redis.VERSION[0] == int(redis.__version__[0]))
        from redis import *
        print(from_url(sys.argv[1]).ping(), hasattr(redis, "nobody"), hasattr(redis, "__nobody__"))
        print(json.dumps([*redis.__all__]))
    """

    *rest, names = said(package, code, server.url)

    assert ["False", f"{redis.__version__} True True", "True False False"] == rest
    assert [*redis.__all__] == json.loads(names)


def test_versions_are_read_when_they_are_asked_for(package: Path) -> None:
    """A client that is given no version looks its own up; what is not installed as a package has a sign for it."""
    code = "import redis; print(redis.DriverInfo().lib_version)"

    assert ["99.99.99"] == said(package, code)


def test_another_redis_py_is_left_as_it_is(tmp_path: Path) -> None:
    """One line that is not as expected: a warning, and no file is touched."""
    package = copied(tmp_path)
    place = package / "redis" / "event.py"
    place.write_text(place.read_text().replace("import asyncio\n", "import asyncio as aio\n"))
    before = {path: path.read_bytes() for path in package.rglob("*.py")}

    warning = postpone(package)

    assert warning is not None
    assert "This redis-py is not the one that is known here" in warning
    assert before == {path: path.read_bytes() for path in package.rglob("*.py")}
