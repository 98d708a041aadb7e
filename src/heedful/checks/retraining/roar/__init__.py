"""Does retraining without the top-ranked words hurt accuracy?"""
