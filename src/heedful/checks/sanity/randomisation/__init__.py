"""Does the explanation depend on the trained weights?"""
