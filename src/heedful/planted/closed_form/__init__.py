"""The planted benchmark: subjects whose truth is known by construction, drawn anew from a seed.

Truth is about three claims. *used*: the output depends on the attention. *ranks*: attention orders
words as deleting them does. *exclusive*: no distant attention gives the same output. Every kind
says in its documentation why its truth holds, at the hardest level too, and
`tests/unit/models/test_planting_truth.py` proves it.
Subjects, texts and truths of a version do not change: a change of any raises `PLANTED_VERSION`.
"""

from heedful.planted.closed_form import hand_wired_transformers as hand_wired_transformers
from heedful.planted.closed_form import inert as inert
from heedful.planted.closed_form import mixed_states as mixed_states
from heedful.planted.closed_form import per_word as per_word
from heedful.planted.closed_form import uniform_attention as uniform_attention
from heedful.planted.closed_form import with_question as with_question
from heedful.planted.closed_form.base import DIFFICULTIES as DIFFICULTIES
from heedful.planted.closed_form.base import LENGTHS as LENGTHS
from heedful.planted.closed_form.base import PLANTED_VERSION as PLANTED_VERSION
from heedful.planted.closed_form.base import kinds as kinds
from heedful.planted.closed_form.case import ASKED_KINDS as ASKED_KINDS
from heedful.planted.closed_form.case import KINDS as KINDS
from heedful.planted.closed_form.case import Case as Case
from heedful.planted.closed_form.case import cases as cases
