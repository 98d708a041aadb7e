"""Do people point at the same words?"""
