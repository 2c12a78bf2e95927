"""Each alarm of a template has a page that tells what to do, and each page its alarm."""

import re
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
RUNBOOKS: Final = ROOT / "docs" / "runbooks"
PARTS: Final = ("## What it means", "## What to look at first", "## What to do", "## When it ends")


def named_pages(template: dict[str, Any]) -> dict[str, str]:
    """The path of the page that the description of each alarm names, by the alarm's name."""
    resources = {name: one for name, one in template["Resources"].items() if isinstance(one, dict)}
    alarms = {name: one["Properties"] for name, one in resources.items() if one["Type"] == "AWS::CloudWatch::Alarm"}
    found = {name: re.findall(r"docs/runbooks/[\w-]+\.md", one["AlarmDescription"]) for name, one in alarms.items()}
    return {name: pages[0] if len(pages) == 1 else "none" for name, pages in found.items()}


def test_each_alarm_has_its_page_and_each_page_its_alarm(templates: dict[str, dict[str, Any]]) -> None:
    """Those of all templates: an alarm without a page wakes somebody up with nothing to do."""
    named = {page for template in templates.values() for page in named_pages(template).values()}

    assert {path.relative_to(ROOT).as_posix() for path in RUNBOOKS.glob("*.md")} == named


def test_each_page_of_the_stack_tells_what_it_means_what_to_do_and_when_it_ends(template: dict[str, Any]) -> None:
    """In the same parts, with a command of ours; the title has the alarm's name, as whoever is woken sees that name."""
    for alarm, page in named_pages(template).items():
        text = (ROOT / page).read_text()
        title, *parts = re.findall(r"^##? .*$", text, re.MULTILINE)

        assert title.startswith("# Alarm: "), page
        assert title.endswith(f"({alarm})"), page
        assert [*PARTS] == parts, page
        assert "lowkiq " in text, page


def test_each_page_stands_in_the_docs() -> None:
    """The site lists them among what operators do."""
    listed = re.findall(r"runbooks/[\w-]+\.md", (ROOT / "mkdocs.yml").read_text())

    assert sorted(f"runbooks/{path.name}" for path in RUNBOOKS.glob("*.md")) == sorted(listed)
