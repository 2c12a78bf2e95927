"""`lowkiq costs`: what a month of jobs costs on AWS."""
