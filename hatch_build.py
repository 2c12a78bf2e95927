"""The description of the package: the README, without the relative links that an index of packages cannot resolve."""

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")


class Description(MetadataHookInterface):
    """Sets `readme`, which `pyproject.toml` therefore calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Take the README, with the address that the configuration of this hook may have."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = described(readme, metadata["version"], self.config.get("address", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def described(readme: str, version: str, address: str) -> str:
    """The README with its links at an address; if that is empty they are plain text, and pictures are left out.

    In the address `{path}` stands for a file's place, `{version}` for the package's version, and `{kind}` for `raw` at
    pictures and `blob` at other files.
    """

    def placed(link: re.Match[str]) -> str:
        picture, text, path = link.groups()
        if address:
            place = address.format(kind="raw" if picture else "blob", version=version, path=path)
            return f"{picture}[{text}]({place})"
        return "" if picture else text

    return _RELATIVE_LINK.sub(placed, readme)
