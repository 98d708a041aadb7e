"""Can a retrained model attend elsewhere with the same outputs?"""
