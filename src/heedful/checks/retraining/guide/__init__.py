"""Does the attention help a model without context?"""
