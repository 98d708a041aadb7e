"""Running the cells of a study."""
