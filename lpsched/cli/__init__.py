"""The command line: parses, calls, prints, sets the exit code."""
