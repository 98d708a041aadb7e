"""Kinds whose truth is known by sets of words; importing this package registers all of them.

One module holds a family: kinds in which attention can go wrong, or right, for the same reason.
The docstring of every kind says why its truth holds, and `heedful.planted.influence.proof` tests it
on every set of words of short texts.
"""

from heedful.planted.influence import classes as classes
from heedful.planted.influence import encoders as encoders
from heedful.planted.influence import heads as heads
from heedful.planted.influence import interaction as interaction
from heedful.planted.influence import lengths as lengths
from heedful.planted.influence import mixtures as mixtures
from heedful.planted.influence import positions as positions
from heedful.planted.influence import questions as questions
from heedful.planted.influence import redundancy as redundancy
from heedful.planted.influence import saturation as saturation
from heedful.planted.influence import tails as tails
from heedful.planted.influence import trained as trained
