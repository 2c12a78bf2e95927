"""Checks of the project's own, beside those of ruff, mypy and import-linter."""
