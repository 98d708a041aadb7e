"""From measurements to estimates, votes and the verdict."""
