"""Finding the app that MODULE:APP names."""

import sys
from pathlib import Path

import pytest

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import AppNotFound
from lowkiq_lambda.settings.loading import load_app

APP = """
from lowkiq_lambda import Lowkiq
class Apps:
    main = Lowkiq()
app = Lowkiq()
other = Lowkiq()
number = 3
"""


WRONG = """
from lowkiq_lambda import Lowkiq, Worker
app = Lowkiq()
@app.worker
class Greet(Worker):
    def perform(self, batch): yield
"""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with some modules, the current one."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "jobs.py").write_text(APP)
    (tmp_path / "broken_shop.py").write_text("import not_there_at_all")
    (tmp_path / "wrong_shop.py").write_text(WRONG)
    (tmp_path / "leaving_shop.py").write_text("import sys\n\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    for name in ("shop", "shop.jobs", "broken_shop", "wrong_shop", "leaving_shop"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.parametrize("spec", ["shop.jobs:app", "shop.jobs:Apps.main", "shop/jobs.py:app", "./shop/jobs.py:other"])
def test_an_app_is_found_from_the_current_folder(spec: str) -> None:
    """L-70: the module need not be installed, and the app may be an attribute of something."""
    assert type(load_app(spec, Lowkiq)).__name__ == "Lowkiq"


def test_l70_the_path_of_a_file_with_one_app_names_it(shop: Path) -> None:
    """L-70: a path is enough where nothing else can be meant."""
    (shop / "alone.py").write_text("from lowkiq_lambda import Lowkiq\n\nmine = Lowkiq()\n")

    assert load_app("./alone.py", Lowkiq) is sys.modules.pop("alone").mine


def test_a_file_of_another_folder_is_refused(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its imports would not be those of the project."""
    monkeypatch.chdir(shop / "shop")

    with pytest.raises(AppNotFound, match="outside of the current folder"):
        load_app("../broken_shop.py", Lowkiq)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("shop.jobs", "'shop.jobs' names no app: expected MODULE:APP, such as shop.jobs:app."),
        (":app", "':app' names no app: expected MODULE:APP, such as shop.jobs:app."),
        ("embedded:", "'embedded:' names a server, not an app: {write}"),
        ("embedded:~/data", "'embedded:~/data' names a server, not an app: {write}"),
        ("redis://:secret@db/0", "'redis://***@db/0' names a server, not an app: {write}"),
        ("shop.jobz:app", "There is no module 'shop.jobz', neither installed nor in {cwd}."),
        ("shap.jobs:app", "There is no module 'shap.jobs', neither installed nor in {cwd}."),
        ("jobs.py:app", "There is no file 'jobs.py' in {cwd}."),
        ("shop/jobs.py", "Module 'shop.jobs' has not one app but 2; it has shop.jobs:app, shop.jobs:other."),
        ("shop/__init__.py", "Module 'shop' has not one app but 0."),
        ("shop.jobs:ap", "Module 'shop.jobs' has no 'ap'; it has shop.jobs:app, shop.jobs:other."),
        ("shop:app", "Module 'shop' has no 'app'."),
        ("shop.jobs:number", "shop.jobs:number is of type int, not a Lowkiq; it has shop.jobs:app, shop.jobs:other."),
        ("broken_shop:app", "Importing 'broken_shop' failed: ModuleNotFoundError: No module named 'not_there_at_all'"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(shop: Path, spec: str, sentence: str) -> None:
    """A spec that leads to no app says which part of it is wrong, and what there is instead."""
    with pytest.raises(AppNotFound) as caught:
        load_app(spec, Lowkiq)

    write = "give the app as MODULE:APP, such as shop.jobs:app, and the server in LOWKIQ_REDIS_URL."
    assert sentence.format(cwd=shop, write=write) == str(caught.value)


def test_a_worker_that_cannot_work_is_told_with_its_line_and_no_traceback(shop: Path) -> None:
    """The sentence of a DeclarationError says all, and the line of the user's code where to look."""
    with pytest.raises(AppNotFound) as caught:
        load_app("wrong_shop:app", Lowkiq)

    begun = f"Importing 'wrong_shop' failed at {shop / 'wrong_shop.py'}, line 4: Greet.perform is a generator: "
    assert str(caught.value).startswith(begun)
    assert caught.value.__cause__ is None


def test_a_module_that_exits_does_not_end_the_command_in_silence(shop: Path) -> None:
    """Its exit code would be that of the command, and 0 says that all was done."""
    with pytest.raises(AppNotFound) as caught:
        load_app("leaving_shop:app", Lowkiq)

    assert (
        f"Importing 'leaving_shop' ends the program, by SystemExit: 0 at {shop / 'leaving_shop.py'}, line 3. "
        'Let it do that only under `if __name__ == "__main__":`.'
    ) == str(caught.value)
