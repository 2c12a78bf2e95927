"""What type checkers say of code that uses the library: `right` has no errors, `wrong` has one in each marked line.

mypy reads both with the rest of the tests, and refuses a mark that it has no use for; `test_pyright` asks pyright.
"""
