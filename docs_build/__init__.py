"""The site of the documentation: `python -m docs_build` makes it of the repository's Markdown, and finds its faults."""
