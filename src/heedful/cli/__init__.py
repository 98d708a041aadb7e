"""The command line: parses requests and prints results; computes nothing itself."""
