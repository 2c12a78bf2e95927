"""Templates as modules: all of them, or none."""

import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, TemplateSyntaxError

from lowkiq_lambda.dashboard import template_build


def run(folder: Path) -> dict[str, Any]:
    """The module's names, as a build runs it."""
    return runpy.run_path(str(folder / "template_build.py"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A built dashboard, of which only this counts: two templates, and who compiles them."""
    shutil.copy(template_build.__file__, tmp_path)
    templates = tmp_path / "templates"
    templates.mkdir()
    (templates / "base.html").write_text("<p>{% block text %}{% endblock %}</p>")
    (templates / "page.html").write_text(
        '{% extends "base.html" %}{% block text %}{{ word | ours }} {{ "a" | ours }}{% endblock %}'
    )
    return tmp_path


def page(folder: Path) -> str:
    """What the page says."""
    environment: Environment = run(folder)["environment"]()
    environment.filters["ours"] = lambda text: f"<{text}>"
    return environment.get_template("page.html").render(word="<hi>")


def test_a_compiled_template_says_what_the_written_one_says(folder: Path) -> None:
    """Escaped as before, with filters that were not known when it was compiled."""
    written = page(folder)
    run(folder)["compile_all"]()
    (folder / "templates" / "page.html").write_text("no more read")

    assert "<p>&lt;&lt;hi&gt;&gt; &lt;a&gt;</p>" == written == page(folder)


def test_a_template_that_cannot_be_compiled_leaves_none(folder: Path) -> None:
    """Neither those of this build nor of an earlier one: all are read as they are written."""
    run(folder)["compile_all"]()
    (folder / "templates" / "zz.html").write_text("{% if %}")

    with pytest.raises(TemplateSyntaxError):
        run(folder)["compile_all"]()

    assert {"template_build.py", "templates"} == {path.name for path in folder.iterdir()}
    assert "<p>&lt;&lt;hi&gt;&gt; &lt;a&gt;</p>" == page(folder)
