"""Hand-built kinds by family: attention can go wrong, or right, for the same reason in each."""

from heedful.planted.influence.families import classes as classes
from heedful.planted.influence.families import encoders as encoders
from heedful.planted.influence.families import heads as heads
from heedful.planted.influence.families import held_out as held_out
from heedful.planted.influence.families import interaction as interaction
from heedful.planted.influence.families import lengths as lengths
from heedful.planted.influence.families import mixtures as mixtures
from heedful.planted.influence.families import positions as positions
from heedful.planted.influence.families import questions as questions
from heedful.planted.influence.families import redundancy as redundancy
from heedful.planted.influence.families import saturation as saturation
from heedful.planted.influence.families import tails as tails
from heedful.planted.influence.families import unseen as unseen
