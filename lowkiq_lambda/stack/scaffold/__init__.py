"""A project of somebody's: the files that `lowkiq new` writes, and the stack that `lowkiq upgrade` keeps in step."""
