"""Does attention point at the words that the output rests on, alone or together?"""
