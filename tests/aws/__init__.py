"""The functions for AWS Lambda, called as Lambda calls them."""
