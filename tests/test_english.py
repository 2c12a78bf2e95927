"""Texts for people are plain English: pages, errors, log lines, help texts, documents, docstrings and comments."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from docs_build.pages import pages

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / file for file, _ in pages(ROOT) if file.name != "CHANGELOG.md"]
PACKAGE = ROOT / "lowkiq_lambda"
ROOMS = sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} | {"."})
"""The packages of the library; the dot is for the modules at its top."""
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
HELP_KEYWORDS = {"help", "description", "sentence", "effect", "title"}
WORDS = re.compile(r"[A-Za-z]+ [A-Za-z]+")
"""A text for people has two words in a row."""

BANNED = {
    "a pronoun in place of a person's role (an operator, they)": r"\b([Hh]e|[Hh]is|[Hh]im|himself)\b(?! page)",
    "“is no” in place of “is not a”": r"(?<!\b[Tt]here )\b(is|are|was|were) no\b(?! (longer|more|other)\b)",
    "“whoever”, “whatever is” in place of a noun": r"\b([Ww]hoever|[Ww]homever|[Ww]hatever (is|was|it|they))\b",
    "“who looks” in place of “visitors that look”": r"(^|[.:;,] )([Ww]ho) (?!is\b[^.]*\?)[a-z]+(?![^.]*\?)",
    "a sentence that begins with a free relative": (
        r"(^|[.:] )What [a-z]+(?: [a-z]+){0,4} (is|are|was|were|has|have|goes|waits|stays)\b(?![^.]*\?)"
    ),
    "“nothing of” in place of “no” and a noun": r"\bnothing of\b",
    "a clause of “who” in place of a noun": r", who (may|can|must|looks|acts|has|is|was)\b(?![^.]*\?)",
    "“is done to” in place of a verb": r"\bis done to\b",
    "“out of reach” in place of “unreachable”": r"\bout of reach\b",
    "“so long, … so long” in place of a percentile": r"\bat most so long\b",
    "“of one's own” in place of a possessive": r"\bof one's own\b",
}

MOST_WORDS = 40
"""Of a sentence of a document. The rule is 25; this finds those that nobody reads at once."""

BAD = [
    "That is no length of time.",
    "Whoever drains the shard next puts it back first.",
    "What it holds is not shown.",
    "What is being performed stays as it is.",
    "Paused: who holds one finishes it.",
    "An operator sees it when he signs in.",
    "Redis is out of reach, trying on",
    "half at most so long",
    "With DashboardClaims, who may look.",
]
GOOD = [
    "What is it doing?",
    "The shard is no longer held.",
    "This server evicts keys when its memory is full.",
    "Redis is unreachable; the daemon retries until it answers.",
    "The operator who paused the queue resumes it.",
]


class Text(NamedTuple):
    """A text for people, and its place."""

    place: str
    text: str


def faults(text: str) -> list[str]:
    """What is wrong with a text."""
    return [fault for fault, pattern in BANNED.items() if re.search(pattern, text)]


def long_sentences(text: str) -> list[str]:
    """The sentences, and parts of sentences between semicolons, with more words than a reader keeps in mind."""
    parts = re.split(r"(?<=[.!?:;])[*)]*\s+(?=\S)", text)
    return [part for part in parts if len(part.split()) > MOST_WORDS]


def of_template(path: Path) -> Iterator[Text]:
    """The texts between tags, and the attributes that browsers show or read aloud."""
    source = re.sub(r"\{#.*?#\}|<svg.*?</svg>", "", path.read_text(), flags=re.DOTALL)
    source = re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "…", source, flags=re.DOTALL)
    for attribute in re.findall(r'(?:title|aria-label)="([^"]*)"', source):
        yield Text(path.name, attribute)
    for text in re.split(r"</?(?!b\b|/b\b|code|strong|span|data|time)[^>]*>", source):
        yield Text(path.name, " ".join(re.sub(r"<[^>]*>", "", text).split()))


def of_module(path: Path) -> Iterator[Text]:
    """The texts of errors, log lines and help, and the constants that hold sentences."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield from of_expression(path, node.exc)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in LOG_METHODS | {"refuse"}:
                yield from of_expression(path, node)
            for keyword in node.keywords:
                if keyword.arg in HELP_KEYWORDS:
                    yield from of_expression(path, keyword.value)


def of_expression(path: Path, node: ast.AST) -> Iterator[Text]:
    """The texts in an expression; what is formatted into them stands as an ellipsis."""
    inside: set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            inside |= {id(value) for value in part.values}
            joined = "".join(str(value.value) if isinstance(value, ast.Constant) else "…" for value in part.values)
            yield Text(f"{path.name}:{part.lineno}", joined)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in inside:
            yield Text(f"{path.name}:{part.lineno}", part.value)


def of_docstrings(path: Path) -> Iterator[Text]:
    """The docstrings of a module, also those below its attributes, without their code."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Text(line_of(path, node.lineno), prose(node.value.value))


def of_comments(path: Path) -> Iterator[Text]:
    """The comments of a module, those of successive lines as one text, without their code."""
    begins, lines = 0, list[str]()
    with path.open("rb") as source:
        comments = [token for token in tokenize.tokenize(source.readline) if token.type == tokenize.COMMENT]
    for comment in comments:
        text = comment.string.lstrip("# ")
        is_whole_line = comment.line.lstrip().startswith("#")
        if lines and is_whole_line and comment.start[0] == begins + len(lines):
            lines.append(text)
            continue
        yield Text(line_of(path, begins), prose(" ".join(lines)))
        begins, lines = comment.start[0], [text]
    yield Text(line_of(path, begins), prose(" ".join(lines)))


def line_of(path: Path, line: int) -> str:
    """A line's place in the repository, as editors open it."""
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name}:{line}"


def prose(text: str) -> str:
    """The text in one line, with an ellipsis for each code span."""
    return " ".join(re.sub(r"`[^`]*`", "…", text).split())


def of_document(path: Path) -> Iterator[Text]:
    """The paragraphs of a document, without its code."""
    source = re.sub(r"```.*?```|<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
    if path.name == "sources.md":  # the words of its second column are quoted
        source = re.sub(r"^\| ([A-Z]+-\d+) \| .*? (?<!\\)\| ", r"| \1 | ", source, flags=re.MULTILINE)
    for number, paragraph in enumerate(re.split(r"\n\n|\n(?=[-|#] ?)", source)):
        yield Text(f"{path.name}, part {number}", prose(paragraph).lstrip("-*|# "))


def of_script(path: Path) -> Iterator[Text]:
    """The comments of a Lua script, of successive lines each, without the lines that declare what it uses."""
    for found in re.finditer(r"(?:^ *--(?!!).*\n)+", path.read_text(), re.MULTILINE):
        yield Text(path.name, " ".join(re.sub(r"^ *-- ?", "", found[0], flags=re.MULTILINE).split()))


def wrong(texts: Iterator[Text]) -> list[str]:
    """The texts with a fault, each with its place."""
    readable = [text for text in texts if WORDS.search(text.text)]
    return [f"{text.place}: {text.text!r}: {fault}" for text in readable for fault in faults(text.text)]


@pytest.mark.parametrize("text", BAD)
def test_a_banned_pattern_is_found(text: str) -> None:
    """Each example of a review has a fault."""
    assert faults(text)


@pytest.mark.parametrize("text", GOOD)
def test_plain_english_has_no_fault(text: str) -> None:
    """Questions and ordinary sentences pass."""
    assert [] == faults(text)


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("dashboard/templates/*.html")), ids=lambda path: path.stem)
def test_pages_are_plain_english(path: Path) -> None:
    """Every text of a template, also titles and labels."""
    assert [] == wrong(of_template(path))


@pytest.mark.parametrize("folder", ROOMS)
def test_errors_logs_and_help_are_plain_english(folder: str) -> None:
    """Every literal text of an error, of a log line and of a command's help."""
    files = sorted(PACKAGE.glob("*.py") if folder == "." else (PACKAGE / folder).rglob("*.py"))

    assert [] == [fault for path in files for fault in wrong(of_module(path))]


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_and_comments_are_plain_english(room: str) -> None:
    """Every docstring and comment of the modules of a room."""
    files = sorted(PACKAGE.glob("*.py") if room == "." else (PACKAGE / room).rglob("*.py"))

    assert files
    assert [] == [fault for path in files for texts in (of_docstrings, of_comments) for fault in wrong(texts(path))]


def test_rooms_are_all_of_the_package() -> None:
    """No module is outside of the rooms that the tests read."""
    rooms = {(path.relative_to(PACKAGE).parts[:-1] or (".",))[0] for path in PACKAGE.rglob("*.py")}

    assert rooms == set(ROOMS)


def test_faults_of_docstrings_and_comments_are_found(tmp_path: Path) -> None:
    """Each has its place: the line on which the docstring, or the first comment of a text, begins."""
    module = tmp_path / "module.py"
    module.write_text(
        '"""A module.\n\nThat is no length."""\n'
        "limit = 1  # Plain words.\n"
        '"""What it holds is not shown, but `that is no code`."""\n'
        "# A queue, as `whoever` may push\n"
        "# to it: that is\n"
        "# no surprise.\n"
        'plain = "# That is no comment."\n'
    )

    assert ["module.py:1", "module.py:5"] == [fault.split(": ")[0] for fault in wrong(of_docstrings(module))]
    assert ["module.py:6"] == [fault.split(": ")[0] for fault in wrong(of_comments(module))]


def test_comments_of_scripts_are_plain_english() -> None:
    """Every comment of the Lua scripts."""
    scripts = sorted((PACKAGE / "store" / "lua").rglob("*.lua"))

    assert len(scripts) > 150
    assert [] == [fault for path in scripts for fault in wrong(of_script(path))]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_documents_are_plain_english(page: Path) -> None:
    """Every paragraph outside of code."""
    assert [] == wrong(of_document(page))


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_of_documents_can_be_kept_in_mind(page: Path) -> None:
    """A sentence has one claim: none is as long as a paragraph. Tables are not sentences."""
    texts = [text for text in of_document(page) if "|" not in text.text]

    assert [] == [f"{text.place}: {sentence}" for text in texts for sentence in long_sentences(text.text)]


def test_a_long_sentence_is_found() -> None:
    """It is counted from a stop to the next."""
    words = " ".join(["word"] * MOST_WORDS)

    assert [f"{words} word."] == long_sentences(f"{words}. {words} word.")
