"""Which files of the repository are pages of the site, and what a file that a page links to becomes there."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

OUTSIDE_DOCS: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "RELEASING.md": "project/releasing.md",
    "SECURITY.md": "project/security.md",
    "bench/README.md": "bench.md",
    "infra/cdk.md": "infra/cdk.md",
    "infra/cloudwatch-dashboard.md": "infra/cloudwatch-dashboard.md",
    "infra/elasticache.md": "infra/elasticache.md",
    "infra/fargate.md": "infra/fargate.md",
    "infra/managed-instances.md": "infra/managed-instances.md",
    "infra/network.md": "infra/network.md",
    "infra/queue-function.md": "infra/queue-function.md",
    "infra/terraform.md": "infra/terraform.md",
    "local/README.md": "local.md",
}
"""Pages that stand beside what they describe, and their places on the site."""

PICTURES: Final = {".png", ".svg"}
LANGUAGES: Final = {".py": "python", ".lua": "lua", ".json": "json", ".toml": "toml", ".yaml": "yaml"}


def pages(root: Path) -> Iterator[tuple[PurePosixPath, PurePosixPath]]:
    """Every file of Markdown that the site holds, and its place on the site."""
    for path in sorted((root / "docs").rglob("*.md")):
        file = PurePosixPath(path.relative_to(root))
        yield file, place_of(file)
    for name, place in OUTSIDE_DOCS.items():
        yield PurePosixPath(name), PurePosixPath(place)


def place_of(file: PurePosixPath) -> PurePosixPath:
    """Where the site has a file; one that is not a page, as code is not, is shown on a page of its own."""
    if str(file) in OUTSIDE_DOCS:
        return PurePosixPath(OUTSIDE_DOCS[str(file)])
    if file.parts[0] == "docs":
        return PurePosixPath(*file.parts[1:])
    return PurePosixPath("source", f"{file}.md")


def source_page(root: Path, file: PurePosixPath) -> str:
    """The page that shows a file of code, or all files of a folder: the site links to no host for them."""
    path = root / file
    parts = sorted(part for part in path.iterdir() if part.suffix in LANGUAGES) if path.is_dir() else [path]
    shown = [f"# `{file}`"]
    for part in parts:
        if part != path:
            shown.append(f"## {part.name}")
        shown.append(f"````{LANGUAGES.get(part.suffix, 'text')}\n{part.read_text().rstrip()}\n````")
    return "\n\n".join(shown) + "\n"
