"""Running an audit and storing its results."""
