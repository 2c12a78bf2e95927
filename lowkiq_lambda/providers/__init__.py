"""What names the server, and opens connections to it: the settings, AWS, or a server that is started here."""
