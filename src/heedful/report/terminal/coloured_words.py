"""Words coloured by their scores, in the terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from heedful.report.escaping import escape_control_characters, shorten_word
from heedful.report.pages import explanation as page
from heedful.results.explanation import TextExplanation

# one hue for what speaks for the target, its opponent for what speaks against: blue and orange
# are distinct for every common form of colour vision
FOR, AGAINST = (33, 102, 172), (230, 120, 20)
NARROW = 72  # columns, below which words stand under their method instead of beside it
LONGEST = 24  # signs of a word in a table
MIDDLE = 0.179  # the luminance on which black and white have the same contrast


def print_words(
    explained: TextExplanation, *, numbers: bool, console: Console | None = None
) -> None:
    """A line of coloured words per method, by kind; `numbers` prints a table of scores instead."""
    out = console or Console()
    target = (escape_control_characters(explained.target), "bold")
    prediction = escape_control_characters(page.describe_prediction(explained))
    out.print(Text.assemble("target: ", target, f" ({prediction})"))
    if explained.question is not None:
        out.print(Text(escape_control_characters(page.describe_question(explained.question))))
    if cut := page.describe_truncation(explained):
        out.print(Text(cut, style="dim"))
    parts = _tables(explained, out.width) if numbers else _groups(explained, out.width)
    for part in parts:
        out.print()
        out.print(part)
    if explained.refused:
        out.print()
    for name, reason in explained.refused.items():
        refusal = escape_control_characters(page.describe_refusal(name, reason))
        out.print(Text(f"refused: {refusal}", style="dim"))


def colour_words(tokens: Sequence[str], scores: Sequence[float]) -> Text:
    """The text with each word's background as strong as its score, relative to the strongest."""
    strongest = max((abs(score) for score in scores), default=0.0) or 1.0
    text = Text()
    for token, score in zip(tokens, scores, strict=True):
        text.append(escape_control_characters(token), style=_style(score / strongest))
        text.append(" ")
    return text


def _groups(explained: TextExplanation, width: int) -> Iterator[Lines]:
    groups = page.group_by_kind(explained)
    longest = max((len(one.name) for group in groups for one in group.methods), default=0)
    for group in groups:
        heading = Text.assemble((group.kind.upper(), "bold"), "\n", (group.meaning, "dim"))
        beside = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        beside.add_column(min_width=longest)
        beside.add_column(ratio=1)
        below: list[RenderableType] = []
        for one in group.methods:
            name = Text.assemble((one.name, "bold"), "\n", (one.scores.kind, "dim"))
            words = _words(explained.tokens, one)
            below += [name, Padding(words, (0, 0, 0, 2))]
            beside.add_row(name, words)
        yield Lines(heading, *(below if width < NARROW else [beside]))


def _words(tokens: Sequence[str], one: page.MethodView) -> Text:
    words = colour_words(tokens, one.scores.scores).append("\n")
    line = " · ".join((page.describe_strongest(tokens, one), *one.facts))
    return words.append(escape_control_characters(line), style="dim")


def _tables(explained: TextExplanation, width: int) -> Iterator[Table]:
    """Words × methods, as many methods in one table as fit beside each other."""
    shown = [one for group in page.group_by_kind(explained) for one in group.methods]
    words = [escape_control_characters(shorten_word(token, LONGEST)) for token in explained.tokens]
    first = max((Text(word).cell_len for word in words), default=0)
    while shown:
        room, count = width - first - 2, 0
        while count < len(shown) and (room := room - _width(shown[count]) - 2) >= 0:
            count += 1
        some, shown = shown[: max(1, count)], shown[max(1, count) :]
        yield _table(words, some)


def _table(words: Sequence[str], some: Sequence[page.MethodView]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="")
    table.add_column("", no_wrap=True)
    for one in some:
        heading = Text.assemble((one.name, "bold"), "\n", (one.scores.kind, "dim"))
        if one.unit:
            heading.append(f" {one.unit}", style="dim")
        table.add_column(heading, justify="right", vertical="top")
    for place, word in enumerate(words):
        scores = ((one, one.scores.scores[place]) for one in some)
        cells = (Text(one.number(score), _style(score / one.largest)) for one, score in scores)
        table.add_row(Text(word), *cells)
    return table


def _width(one: page.MethodView) -> int:
    return max(len(one.name), len(f"{one.scores.kind} {one.unit}".strip()), 8)


def _style(share: float) -> str:
    strength, hue = abs(share), FOR if share >= 0 else AGAINST
    red, green, blue = (round(255 - (255 - one) * strength) for one in hue)
    # black or white, whichever stands out more from what is behind it
    dark = 0.2126 * _light(red) + 0.7152 * _light(green) + 0.0722 * _light(blue) < MIDDLE
    ink = "rgb(255,255,255)" if dark else "rgb(0,0,0)"
    return f"{ink} on rgb({red},{green},{blue})"


def _light(part: int) -> float:
    share: float = (part / 255) ** 2.2
    return share
