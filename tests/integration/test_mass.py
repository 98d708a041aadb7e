"""Where methods put their mass when it is known which word decides."""

import pytest
from benchmarks.mass import found, hidden, hidden_rows

import heedful

FOLLOW_OUTPUT = (
    *("gradient", "input_x_gradient", "one_hot_gradient", "smoothgrad", "integrated_gradients"),
    *("leave_one_out", "occlusion", "lime", "kernel_shap"),
)
FOLLOW_ATTENTION = ("attention", "attention_x_gradient", "attention_norm")


@pytest.fixture(scope="module")
def mass():
    subject = hidden()
    asked = {name: {} for name in (*FOLLOW_OUTPUT, *FOLLOW_ATTENTION)}
    asked |= {"lime": {"samples": 100}, "kernel_shap": {"samples": 100}}
    return found(subject, heedful.read(hidden_rows(subject, 60)), methods=asked)


@pytest.mark.parametrize("method", FOLLOW_OUTPUT)
def test_what_follows_the_output_finds_the_word_that_attention_hides(mass, method):
    assert mass[method][1] == 1.0


@pytest.mark.parametrize("method", FOLLOW_ATTENTION)
def test_what_follows_the_attention_misses_it(mass, method):
    share, first = mass.get(method, (0.0, 0.0))  # scores of zero are of no word
    assert share < 0.02
    assert first == 0.0
