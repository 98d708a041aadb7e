"""Families of trained kinds; importing this package registers them.

Each network learns a rule on synthetic texts and on sets of their words, and its attention learns
what the kind says. Its truth is then tested by `heedful.planted.influence.proof`; a training that
breaks a bound is discarded, counted (`PlantedModel.redrawn`) and repeated with other draws. The
same seed gives the same weights on the same machine and version of torch.
"""

from heedful.planted.influence.trained import recurrent as recurrent
from heedful.planted.influence.trained import transformers as transformers
