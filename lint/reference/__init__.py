"""The reference pages of the docs, made of the code: `python -m lint.reference` writes them anew."""
