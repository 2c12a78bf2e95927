"""What every module may use: errors, clocks, the text of errors, forks."""
