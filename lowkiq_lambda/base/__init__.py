"""The modules that every other may use: errors, clocks, the text of errors, forks."""
