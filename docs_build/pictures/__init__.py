"""The pictures of the docs, drawn by code: `python -m docs_build.pictures` writes them into docs/images."""
