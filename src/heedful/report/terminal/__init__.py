"""Output for the terminal."""
