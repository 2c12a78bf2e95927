"""Each alarm of a template has a page that tells what to do, and each page its alarm."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import botocore.session
import pytest
from botocore import xform_name

from lowkiq_lambda.cli.catalog import every_command

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

    pages = [path for path in RUNBOOKS.glob("*.md") if path.read_text().startswith("# Alarm: ")]
    assert {path.relative_to(ROOT).as_posix() for path in pages} == named


def test_each_alarm_tells_the_next_step(templates: dict[str, dict[str, Any]]) -> None:
    """Whoever is woken by it need not open a page first: it names a command, and AWS takes no more letters."""
    resources = [one for template in templates.values() for one in template["Resources"].values()]
    alarms = [one for one in resources if isinstance(one, dict) and one["Type"] == "AWS::CloudWatch::Alarm"]
    texts = [alarm["Properties"]["AlarmDescription"] for alarm in alarms]
    named = [re.findall(r"\blowkiq ([a-z][a-z-]+(?: run)?)", text) for text in texts]

    assert all(named), texts
    assert {command for commands in named for command in commands} <= {*every_command()}
    assert "why" in {command for commands in named for command in commands}
    assert 1_024 >= max(map(len, texts))


def test_each_page_of_the_stack_tells_what_it_means_what_to_do_and_when_it_ends(template: dict[str, Any]) -> None:
    """In the same parts, with a command of ours; the title has the alarm's name, as whoever is woken sees that name."""
    for alarm, page in named_pages(template).items():
        text = (ROOT / page).read_text()
        title, *parts = re.findall(r"^##? .*$", text, re.MULTILINE)

        assert title.startswith("# Alarm: "), page
        assert title.endswith(f"({alarm})"), page
        assert [*PARTS] == parts, page
        assert "lowkiq " in text, page


def commands_of(text: str) -> Iterator[list[str]]:
    """The words of each command of AWS in the blocks of a page, those in `$(...)` too."""
    for block in re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for found in re.findall(r"(?:^|\$\()(aws .*?)(?:\)$|$)", block.replace("\\\n", ""), re.MULTILINE):
            yield shlex.split(found)


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda page: page.stem)
def test_commands_of_aws_run_as_they_are_printed(template: dict[str, Any], page: Path) -> None:
    """AWS knows the command and its options; the stack has the functions, logs, outputs and resources that it names."""
    parts = {name: one["Properties"] for name, one in template["Resources"].items() if "Properties" in one}
    functions = {part["FunctionName"]["Fn::Sub"] for part in parts.values() if "Handler" in part}
    groups = {part["LogGroupName"]["Fn::Sub"] for part in parts.values() if "LogGroupName" in part}
    for _, service, operation, *words in commands_of(page.read_text()):
        given = {word.removeprefix("--"): value for word, value in pairwise([*words, ""]) if word.startswith("--")}

        assert set() == given.keys() - options_of(service, operation)
        assert of_any_stack(given.get("function-name", "lowkiq-drain")) in functions
        assert of_any_stack(given.get("log-group-name", "/aws/lambda/lowkiq-drain")) in groups
        assert given.get("logical-resource-id", "FailureQueue") in parts
        assert {*re.findall(r"OutputKey=='(\w+)'", given.get("query", ""))} <= template["Outputs"].keys()
        # A group of schedules has a name of its own, which the stack tells.
        assert given.get("group-name", "$group") == "$group"


def options_of(service: str, operation: str) -> set[str]:
    """Those that the command of AWS takes."""
    model = botocore.session.get_session().get_service_model(service)
    names = {xform_name(name, "-"): name for name in model.operation_names}
    taken = model.operation_model(names[operation]).input_shape
    return {"query", "output", "region"} | {xform_name(name, "-") for name in (taken.members if taken else ())}


def of_any_stack(name: str) -> str:
    """As the template has the name of what the stack `lowkiq` has."""
    return name.replace("lowkiq", "${AWS::StackName}", 1)


def test_each_page_stands_in_the_docs() -> None:
    """The site lists them among what operators do."""
    listed = re.findall(r"runbooks/[\w-]+\.md", (ROOT / "mkdocs.yml").read_text())

    assert sorted(f"runbooks/{path.name}" for path in RUNBOOKS.glob("*.md")) == sorted(listed)
