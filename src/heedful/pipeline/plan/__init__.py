"""The plan of an audit and its settings."""
