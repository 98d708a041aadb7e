"""Trained cases of the planted benchmark: small networks, taught anew from a seed, truth proved.

The truth of a kind follows from its task and its architecture; that a training came to it is not
hoped for but tried (`proof`), by bounds that use none of the checks. What fails is taught again
from other draws, and counted (`redrawn`). The same seed gives the same weights, on the same machine
and version of torch.
"""

from heedful.planted.trained.base import TRAINED_LENGTHS as TRAINED_LENGTHS
from heedful.planted.trained.base import TRAINED_VERSION as TRAINED_VERSION
from heedful.planted.trained.case import TRAINED_KINDS as TRAINED
from heedful.planted.trained.case import TrainedCase as TrainedCase
from heedful.planted.trained.case import trained_cases as trained_cases
