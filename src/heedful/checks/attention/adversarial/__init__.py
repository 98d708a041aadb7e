"""How far can attention change without changing the output?"""
