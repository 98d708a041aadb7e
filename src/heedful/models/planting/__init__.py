"""The planted benchmark: subjects whose truth is known by construction, drawn anew from a seed.

Truth is about three claims. *used*: the output depends on the attention. *ranks*: attention orders
words as deleting them does. *exclusive*: no distant attention gives the same output. Every kind
says in its documentation why its truth holds, at the hardest level too, and
`tests/unit/models/test_planting_truth.py` proves it.
Subjects, texts and truths of a version do not change: a change of any raises `PLANTED_VERSION`.
"""

from heedful.models.planting import asked as asked
from heedful.models.planting import compiled as compiled
from heedful.models.planting import frozen as frozen
from heedful.models.planting import idle as idle
from heedful.models.planting import mixing as mixing
from heedful.models.planting import wordwise as wordwise
from heedful.models.planting.base import DIFFICULTIES as DIFFICULTIES
from heedful.models.planting.base import LENGTHS as LENGTHS
from heedful.models.planting.base import PLANTED_VERSION as PLANTED_VERSION
from heedful.models.planting.base import kinds as kinds
from heedful.models.planting.case import ASKED_KINDS as ASKED_KINDS
from heedful.models.planting.case import KINDS as KINDS
from heedful.models.planting.case import Case as Case
from heedful.models.planting.case import cases as cases
