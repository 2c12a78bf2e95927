"""What the tests of every suite share: one name for one thing, each file one concept."""
