"""What joins the library to others; each part needs an extra of its own, and is imported by those who use it."""
