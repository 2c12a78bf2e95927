"""Where this library was installed from, where that was a file of this machine and no index of packages."""

import json
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def installed_from() -> Path | None:
    """The wheel, or the folder with the source; None for an index, which other machines know too."""
    told = distribution("lowkiq-lambda").read_text("direct_url.json")
    url = urlsplit(json.loads(told)["url"]) if told else None
    return Path(url2pathname(url.path)) if url and url.scheme == "file" else None
