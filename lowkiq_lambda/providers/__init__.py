"""The names of servers, and connections to them: the settings, AWS, or a server that is started here."""
