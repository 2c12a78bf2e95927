"""`lowkiq alerts`: rules for Prometheus and a board for Grafana."""
