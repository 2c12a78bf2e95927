"""Tests of the projects that `lowkiq new` writes, and of `lowkiq upgrade`."""
