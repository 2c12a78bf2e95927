"""Templates: everything that they are given is text, unless a template itself says otherwise."""

from functools import cache

from jinja2 import Environment

from lowkiq_lambda.dashboard import figures, formatting
from lowkiq_lambda.dashboard.compiling import environment as plain_environment


@cache
def templates() -> Environment:
    """The templates, loaded when they are first needed."""
    environment = plain_environment()
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
