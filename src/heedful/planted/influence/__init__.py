"""Kinds whose truth is known by sets of words; importing this package registers all of them.

The hand-built kinds stand in `families`, the trained ones in `trained`. The docstring of every kind
says why its truth holds, and `heedful.planted.influence.proof` tests it on every set of words of
short texts.
"""

from heedful.planted.influence import families as families
from heedful.planted.influence import trained as trained
