"""Kinds whose truth is known in closed form; importing this package registers all of them.

The docstring of every kind says why its truth holds, also at the hardest level, and
`tests/unit/models/test_planted_truth.py` proves it.
"""

from heedful.planted.closed_form import classifier_kinds as classifier_kinds
from heedful.planted.closed_form import question_kinds as question_kinds
from heedful.planted.closed_form import transformer_kinds as transformer_kinds
