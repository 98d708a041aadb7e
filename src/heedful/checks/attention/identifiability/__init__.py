"""Which part of attention can affect the output?"""
