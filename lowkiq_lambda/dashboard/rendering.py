"""The templates with the dashboard's filters. Values are escaped, unless a template marks them as safe."""

from functools import cache

from jinja2 import Environment

from lowkiq_lambda.dashboard import number_html
from lowkiq_lambda.dashboard.template_build import environment as plain_environment
from lowkiq_lambda.operate.presentation import formatting


@cache
def templates() -> Environment:
    """The environment, made at its first use."""
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
        "quoted",
        "visible",
        "plain",
        "ago",
        "pause",
    )
    environment.filters |= {name: getattr(formatting, name) for name in names}
    environment.filters |= {
        name: getattr(number_html, name) for name in ("area", "breakable", "number_html", "duration_html", "with_code")
    }
    return environment
