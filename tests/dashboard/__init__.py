"""The web pages, asked as a browser asks."""
