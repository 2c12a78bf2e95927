"""`lowkiq alerts`: prints rules for Prometheus, or a board for Grafana."""

import sys
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from lowkiq_lambda.cli.alerts.board import board_file
from lowkiq_lambda.cli.alerts.rules import rules_file
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.parts import command_app

_HELP: Final = """
Print a rules file for Prometheus, or a board for Grafana, of the metrics that the dashboard serves at /metrics.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The file is printed.
  2  The command line cannot work.

EXAMPLES
  Rules, named under rule_files in prometheus.yml:
    lowkiq alerts --format prometheus > lowkiq.rules.yml
  A board, for the page "Import dashboard" of Grafana:
    lowkiq alerts --format grafana > lowkiq.json
"""
command: Final = command_app("alerts", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq alerts [OPTIONS]")


@command.default
def print_file(
    *,
    format_: Annotated[
        Literal["prometheus", "grafana"],
        Parameter(name="--format", help="Rules for prometheus, or a board for grafana."),
    ] = "prometheus",
) -> int:
    """Print it; the exit code."""
    sys.stdout.write(rules_file() if format_ == "prometheus" else board_file())
    return DONE
