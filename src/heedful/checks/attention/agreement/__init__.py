"""Do attention and feature importance rank tokens alike?"""
