"""Does learned attention beat uniform attention?"""
