"""The planted family "encoders": every kind is proved, and wrong truths fail."""

from support.influence_proofs import (
    assert_wrong_truths_fail,
    failed_bounds,
    kinds_of,
    smallest_case,
)


@kinds_of("encoders")
def test_every_kind_is_proved(kind):
    assert failed_bounds(smallest_case(kind)) == []


@kinds_of("encoders")
def test_wrong_truths_fail_their_proof(kind):
    assert_wrong_truths_fail(smallest_case(kind))
