"""Attacks drawn from a seed: data files, plans, model folders, run folders, and kills.

`python -m attacks` draws and judges them (`make fuzz`), `python -m attacks.kills` kills commands at
random moments (`make kills`). Whatever is attacked must give a right answer, or refuse in one line.
"""
