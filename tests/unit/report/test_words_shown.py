"""Words in colour: the strongest is strongest, signs differ, and nothing else gets through."""

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.style import Style

from heedful.core.records import Explained, MethodScores
from heedful.report.words import AGAINST, FOR, coloured, print_words, printable


def backgrounds(tokens, scores, **settings):
    """(text, background) of each coloured word."""
    text = coloured(tokens, scores, **settings)
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


def test_ink_stands_out_from_its_background():
    inks = [Style.parse(one.style).color.name for one in coloured(["a", "b"], [0.5, 1.0]).spans]
    assert inks == ["black", "white"]


def test_no_words_are_no_text():
    assert coloured([], []).plain == ""


def test_every_word_has_a_score():
    with pytest.raises(ValueError, match="zip"):
        coloured(["a", "b"], [1.0])


def test_numbers_stand_beside_the_words():
    assert coloured(["fine", "film"], [0.61234, -0.5], numbers=True).plain == (
        "fine(0.612) film(-0.500) "
    )


@pytest.mark.parametrize(
    "sign", ["\x1b", "\0", "\n", "\t", "\r", "\x07", "\x9b", "\u202e", "\u200d"]
)
def test_control_characters_are_replaced(sign):
    assert printable(f"a{sign}b") == "a\ufffdb"
    assert coloured([f"a{sign}b"], [1.0]).plain == "a\ufffdb "


@pytest.mark.parametrize("text", ["naïve", "中文", "שלום", "😀", "[b]", "a b"])
def test_what_can_be_printed_is_left_alone(text):
    assert printable(text) == text


@given(st.text())
def test_what_is_printed_is_printable_and_as_long(text):
    assert printable(text).isprintable()
    assert len(printable(text)) == len(text)


def shown(explained, *, numbers=False, width=80):
    out = StringIO()
    console = Console(file=out, width=width, color_system=None)
    print_words(explained, numbers=numbers, console=console)
    return out.getvalue()


def explained(tokens=("a", "fine", "film"), target="positive", **methods):
    methods = methods or {"attention": MethodScores("attention", False, (0.1, 0.6, 0.3))}
    return Explained(" ".join(tokens), target, "word", tokens, methods)


def test_each_method_has_its_line_and_says_what_it_is():
    text = shown(
        explained(
            attention=MethodScores("attention", False, (0.1, 0.6, 0.3)),
            leave_one_out=MethodScores("saliency", True, (0.1, -0.6, 0.3)),
        )
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[:3] == ["target: positive", "attention a fine film", "attention"]
    assert "leave_one_out a fine film" in lines
    assert "saliency, signed" in lines


def test_numbers_are_shown_when_asked_for():
    assert "a(0.100) fine(0.600) film(0.300)" in shown(explained(), numbers=True)
    assert "(" not in shown(explained())


def test_markup_is_shown_as_it_is():
    tokens = ("[red]x[/red]", "[/]", "[link=http://x]y[/link]")
    text = shown(explained(tokens, target="[bold]z[/bold]"))
    assert "target: [bold]z[/bold]" in text
    assert " ".join(tokens) in " ".join(text.split())


def test_control_characters_in_words_do_not_reach_the_terminal():
    assert "\x1b" not in shown(explained(("\x1b[2J", "fine", "\x1b]0;t\x07")))


def test_control_characters_in_the_target_do_not_reach_the_terminal():
    assert "\x1b" not in shown(explained(target="\x1b[2Jz"))
