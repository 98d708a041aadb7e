"""The gates of DiffMask and the folder they are saved in."""
