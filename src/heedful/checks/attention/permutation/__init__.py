"""Does shuffled attention change the output?"""
