"""The dashboard as people meet it: a real browser, a real server, a real Redis."""
