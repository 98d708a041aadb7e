"""Words coloured by their scores, in the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.core.records import Explained
from heedful.report.safe import printable

# one hue for what speaks for the target, its opponent for what speaks against: blue and orange
# can be told apart by every common form of colour vision
FOR, AGAINST = (33, 102, 172), (230, 120, 20)


def print_words(explained: Explained, *, numbers: bool, console: Console | None = None) -> None:
    """One line of coloured words per method; `numbers` prints each word's score beside it."""
    out = console or Console()
    out.print(Text.assemble("target: ", (printable(explained.target), "bold")))
    table = Table(box=None, show_header=False, padding=(0, 2, 1, 0))
    for name, one in explained.methods.items():
        signed = ", signed" if one.signed else ""
        table.add_row(
            Text.assemble((name, "bold"), "\n", (f"{one.kind}{signed}", "dim")),
            coloured(explained.tokens, one.scores, numbers=numbers),
        )
    out.print(table)


def coloured(tokens: Sequence[str], scores: Sequence[float], *, numbers: bool = False) -> Text:
    """The text with each word's background as strong as its score, relative to the strongest."""
    strongest = max((abs(score) for score in scores), default=0.0) or 1.0
    text = Text()
    for token, score in zip(tokens, scores, strict=True):
        label = f"{token}({score:.3f})" if numbers else token
        text.append(printable(label), style=_style(score / strongest))
        text.append(" ")
    return text


def _style(share: float) -> str:
    strength = abs(share)
    hue = FOR if share >= 0 else AGAINST
    red, green, blue = (round(255 - (255 - one) * strength) for one in hue)
    ink = "white" if strength > 0.6 else "black"
    return f"{ink} on rgb({red},{green},{blue})"
