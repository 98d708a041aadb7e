"""The command line: parse a request, show an answer; no arithmetic."""
