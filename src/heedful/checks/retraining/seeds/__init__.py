"""How much does attention vary with the seed?"""
