"""Templates: everything that they are given is text, unless a template itself says otherwise."""

from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lowkiq_lambda.dashboard import figures, formatting

_FOLDER: Final = Path(__file__).parent / "templates"


@cache
def templates() -> Environment:
    """The templates, compiled when they are first needed."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = (
        "short",
        "exact",
        "duration",
        "exact_seconds",
        "size",
        "rate",
        "iso",
        "utc",
        "breakable",
        "quoted",
        "visible",
        "plain",
        "ago",
        "pause",
    )
    environment.filters |= {name: getattr(formatting, name) for name in names}
    environment.filters |= {"area": figures.area, "number": figures.number, "lasting": figures.lasting}
    return environment
