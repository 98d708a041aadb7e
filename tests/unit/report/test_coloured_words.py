"""Words in colour: the strongest is strongest, signs differ, and nothing else gets through."""

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style

from heedful.report.escaping import escape_control_characters
from heedful.report.pages.explanation import KINDS
from heedful.report.terminal.coloured_words import (
    AGAINST,
    FOR,
    colour_words,
    print_words,
)
from heedful.results.explanation import MethodScores, TextExplanation
from support.browser import contrast


def backgrounds(tokens, scores):
    """(text, background) of each coloured word."""
    text = colour_words(tokens, scores)
    return [
        (text.plain[span.start : span.end], tuple(Style.parse(span.style).bgcolor.triplet))
        for span in text.spans
    ]


def strength(colour):
    """How far a background lies from white."""
    return sum(255 - one for one in colour)


def test_the_strongest_word_has_the_full_colour():
    words = backgrounds(["a", "fine", "film"], [0.1, 0.6, 0.3])
    assert [word for word, _ in words] == ["a", "fine", "film"]
    assert words[1][1] == FOR
    assert strength(words[0][1]) < strength(words[2][1]) < strength(words[1][1])


def test_signs_have_their_own_hue():
    (_, against), (_, support) = backgrounds(["bad", "good"], [-2.0, 2.0])
    assert (against, support) == (AGAINST, FOR)


def test_the_strongest_may_be_against():
    (_, weak), (_, strong) = backgrounds(["good", "bad"], [1.0, -4.0])
    assert strong == AGAINST
    assert strength(weak) == pytest.approx(strength(FOR) / 4, abs=3)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_colours_are_as_strong_as_scores(scores):
    strongest = max(map(abs, scores)) or 1.0
    found = backgrounds(["w"] * len(scores), scores)
    for score, (_, colour) in zip(scores, found, strict=True):
        hue = FOR if score >= 0 else AGAINST
        want = [255 - (255 - one) * abs(score) / strongest for one in hue]
        assert list(colour) == pytest.approx(want, abs=0.51)


def test_scores_of_zero_are_white():
    assert backgrounds(["a", "b"], [0.0, 0.0]) == [("a", (255,) * 3), ("b", (255,) * 3)]
    assert backgrounds(["a", "b"], [0.0, 1.0])[0] == ("a", (255,) * 3)


@pytest.mark.parametrize("sign", [1, -1])
def test_ink_stands_out_from_its_background(sign):
    scores = [sign * step / 50 for step in range(51)]
    for span in colour_words(["w"] * 51, scores).spans:
        style = Style.parse(span.style)
        assert contrast(style.color.triplet, style.bgcolor.triplet) >= 4.5


def test_no_words_are_no_text():
    assert colour_words([], []).plain == ""


def test_every_word_has_a_score():
    with pytest.raises(ValueError, match="zip"):
        colour_words(["a", "b"], [1.0])


@pytest.mark.parametrize(
    "sign", ["\x1b", "\0", "\n", "\t", "\r", "\x07", "\x9b", "\u202e", "\u200d"]
)
def test_control_characters_are_replaced(sign):
    assert escape_control_characters(f"a{sign}b") == "a\ufffdb"
    assert colour_words([f"a{sign}b"], [1.0]).plain == "a\ufffdb "


@pytest.mark.parametrize("text", ["naïve", "中文", "שלום", "😀", "[b]", "a b"])
def test_what_can_be_printed_is_left_alone(text):
    assert escape_control_characters(text) == text


@given(st.text())
def test_what_is_printed_is_printable_and_as_long(text):
    assert escape_control_characters(text).isprintable()
    assert len(escape_control_characters(text)) == len(text)


def shown(explained, *, numbers=False, width=80):
    out = StringIO()
    console = Console(file=out, width=width, color_system=None)
    print_words(explained, numbers=numbers, console=console)
    return out.getvalue()


PLAIN = MethodScores("attention", False, (0.1, 0.6, 0.3))
SIGNED = MethodScores("saliency", True, (0.1, -0.6, 0.3), "log_odds", {"samples": 8})


def explained(tokens=("a", "fine", "film"), target="positive", more=None, **methods):
    methods = methods or {"attention": PLAIN}
    rest = {"predicted": target, "probability": 0.75} | (more or {})
    return TextExplanation(" ".join(tokens), target, "word", tokens, methods, **rest)


def squeezed(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_each_method_has_its_line_and_says_what_it_is():
    lines = squeezed(shown(explained(leave_one_out=SIGNED, attention=PLAIN)))
    assert lines == [
        "target: positive (probability 0.750, predicted)",
        "",
        "ATTENTION",
        KINDS["attention"],
        "attention a fine film",
        "attention strongest: “fine” 0.6",
        "",
        "SALIENCY",
        KINDS["saliency"],
        "leave_one_out a fine film",
        "saliency strongest: “fine” −0.6 · signed · of log_odds · samples = 8",
    ]


def test_in_a_narrow_terminal_words_stand_below_their_method():
    lines = squeezed(shown(explained(leave_one_out=SIGNED), width=30))
    assert lines[lines.index("leave_one_out") + 1 :][:3] == [
        "saliency",
        "a fine film",
        "strongest: “fine” −0.6 ·",
    ]


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("numbers", [False, True])
def test_nothing_is_wider_than_the_terminal(width, numbers):
    tokens = ("x" * 300, "中" * 50, "fine")
    text = shown(explained(tokens, leave_one_out=SIGNED), width=width, numbers=numbers)
    assert max(map(cell_len, text.splitlines())) <= width


def test_another_target_than_the_predicted_class_is_told():
    text = shown(explained(more={"predicted": "negative", "probability": 0.25}))
    assert "target: positive (probability 0.250, while negative is predicted)" in text


def test_refusals_have_a_line_each_and_a_cut_text_is_told():
    refused = {"flow": "flow is for layers.", "lime": "too short."}
    lines = squeezed(shown(explained(more={"refused": refused, "truncated": True})))
    assert lines[-2:] == ["refused: flow is for layers.", "refused: lime: too short."]
    assert lines[1] == "The text is longer than the model reads: only these 3 words were."


def test_numbers_are_a_table_of_words_and_methods():
    tiny = MethodScores("sensitivity", False, (2.5e-7, 0.0, 1e-9))
    one = explained(attention=PLAIN, leave_one_out=SIGNED, gradient=tiny)
    lines = squeezed(shown(one, numbers=True))
    assert lines[2:] == [
        "attention gradient leave_one_out",
        "attention sensitivity ×10⁻⁷ saliency",
        "a 0.100 2.500 +0.100",
        "fine 0.600 0.000 −0.600",
        "film 0.300 0.010 +0.300",
    ]


def test_methods_that_do_not_fit_beside_each_other_have_another_table():
    many = {f"integrated_gradients_{number}": PLAIN for number in range(5)}
    lines = squeezed(shown(explained(**many), numbers=True, width=60))
    headings = [line for line in lines if "integrated" in line]
    assert [line.count("integrated") for line in headings] == [2, 2, 1]
    assert lines.count("fine 0.600 0.600") == 2


def test_scores_of_zero_are_told():
    nothing = MethodScores("attention", False, (0.0, 0.0, 0.0))
    assert "every word has a score of 0" in shown(explained(attention=nothing))
    assert "fine 0.000" in squeezed(shown(explained(attention=nothing), numbers=True))


def test_markup_is_shown_as_it_is():
    tokens = ("[red]x[/red]", "[/]", "[link=http://x]y[/link]")
    for numbers in (False, True):
        text = shown(explained(tokens, target="[bold]z[/bold]"), numbers=numbers)
        assert "target: [bold]z[/bold]" in text
        assert all(token in text for token in tokens)


HOSTILE = ("\x1b[2J", "fine", "\x1b]0;t\x07")


@pytest.mark.parametrize("numbers", [False, True])
def test_control_characters_do_not_reach_the_terminal(numbers):
    more = {"refused": {"flow": "\x1b[2J"}, "predicted": "\x1b[31m"}
    one = explained(HOSTILE, target="\x1b[2Jz", more=more, attention=PLAIN, lime=SIGNED)
    assert "\x1b" not in shown(one, numbers=numbers)


def test_colour_is_for_terminals_only():
    for terminal in (True, False):
        out = StringIO()
        console = Console(file=out, width=80, force_terminal=terminal)
        print_words(explained(), numbers=False, console=console)
        assert ("\x1b[" in out.getvalue()) == terminal
