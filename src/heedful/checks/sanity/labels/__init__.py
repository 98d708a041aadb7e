"""Does the explanation depend on the training labels?"""
