"""`lowkiq simulate`: its inputs, the choices, the table and the plots."""
