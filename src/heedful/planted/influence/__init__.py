"""Kinds whose truth is known by sets of words; importing this package registers all of them.

One module holds a family: kinds in which attention can go wrong, or right, for the same reason.
The docstring of every kind says why its truth holds, and `heedful.planted.influence.proof` tests it
on every set of words of short texts.
"""

from heedful.planted.influence import trained as trained
