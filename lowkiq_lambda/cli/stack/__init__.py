"""`lowkiq stack`: the commands about the stack of a project on AWS."""
