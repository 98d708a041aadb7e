"""Does removing the top-ranked words change the output more than random words do?"""
