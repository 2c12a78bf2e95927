"""The helpers that suites share: each thing has one name, each file is one concept."""
