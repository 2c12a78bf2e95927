"""The docs for programs that read Markdown: `llms.txt` lists the pages, `llms-full.txt` holds all of them."""

import re
import shutil
from pathlib import Path
from typing import Final

from docs_build.nav import Contents
from docs_build.staging import CODE

LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\[*(0-9])")


def write_llms(site: Path, pages: Path, contents: Contents) -> None:
    """Write both files of a site, and the Markdown of each page beside it."""
    lines = [f"# {contents.name}", f"\n> {contents.description}.\n"]
    texts = []
    section: tuple[str, ...] = ()
    for placed in contents.nav:
        text = (pages / placed.place).read_text()
        if placed.sections != section:
            section = placed.sections
            lines.append(f"\n## {': '.join(section)}\n")
        lines.append(f"- [{placed.title or title(text)}]({placed.place}): {first_sentence(text)}")
        shutil.copyfile(pages / placed.place, site / placed.place)
        texts.append(f"<!-- {placed.place} -->\n\n{text.strip()}\n")
    (site / "llms.txt").write_text("\n".join(lines) + "\n")
    (site / "llms-full.txt").write_text("\n".join(texts))


def title(text: str) -> str:
    """The first heading of a page."""
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))


def first_sentence(text: str) -> str:
    """What a page begins with below its heading, without code, tables, pictures, links and bold words."""
    blocks = CODE.sub(lambda match: match[0] if not match[0].lstrip(" >").startswith("```") else "", text)
    paragraphs = (" ".join(block.split()) for block in re.split(r"\n\s*\n", blocks))
    prose = next(paragraph for paragraph in paragraphs if paragraph and paragraph[0] not in "#|!-")
    return SENTENCE_END.split(LINK.sub(r"\1", prose).replace("**", ""))[0].rstrip(":")
