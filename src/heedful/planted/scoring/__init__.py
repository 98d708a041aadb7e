"""How often the top words of a method of explanation are those that matter, on planted models."""
