"""An explanation → what is shown of it, in words and numbers; how it looks is decided elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from heedful.results.explanation import MethodScores, TextExplanation

KINDS = {
    "attention": "Where the model looks, whatever the output then makes of it.",
    "sensitivity": "How fast the output moves when a word's vector moves a little.",
    "saliency": "What each word, as it stands here, adds to this output or takes from it.",
    "control": "Knows nothing of model or meaning: what the others must differ from.",
}
LONGEST = 40  # characters of a word in a sentence
LONGEST_QUESTION = 1000
SMALLEST, LARGEST = 0.01, 1000.0  # outside of which numbers are shown in powers of ten
LEAST = -300  # a power of ten that is a number still
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class MethodView:
    """One method: what it says of itself, its scores, and the power of ten to show them in."""

    name: str
    scores: MethodScores
    strongest: int | None  # the place of the largest score, whatever its sign; None if all are 0
    power: int

    @property
    def facts(self) -> tuple[str, ...]:
        """Whether it has a sign, what is explained, and every setting that is not the usual one."""
        one = self.scores
        facts = ["signed"] if one.signed else []
        facts += [f"of {one.of}"] if one.of else []
        return (*facts, *(f"{name} = {value}" for name, value in one.settings.items()))

    @property
    def largest(self) -> float:
        """The size of the strongest score; 1 if all are 0."""
        return 1.0 if self.strongest is None else abs(self.scores.scores[self.strongest])

    @property
    def unit(self) -> str:
        """The power of ten beside a column of numbers, where there is one."""
        return f"×10{str(self.power).translate(RAISED)}" if self.power else ""

    def number(self, score: float) -> str:
        """A score as it stands in the method's column: three decimals, a sign where it has one."""
        sign = "+" if self.scores.signed else ""
        text = f"{score / 10.0**self.power:{sign}.3f}"
        return "0.000" if text.strip("+-") == "0.000" else text.replace("-", "\u2212")


@dataclass(frozen=True, slots=True)
class KindGroup:
    """The methods of one kind, and what that kind means."""

    kind: str
    meaning: str
    methods: tuple[MethodView, ...]


def group_by_kind(explained: TextExplanation) -> tuple[KindGroup, ...]:
    """The methods by kind, known kinds first and in their order."""
    shown = [build_method_view(name, one) for name, one in explained.methods.items()]
    kinds = dict.fromkeys((*KINDS, *(one.scores.kind for one in shown)))
    found = {kind: tuple(one for one in shown if one.scores.kind == kind) for kind in kinds}
    return tuple(KindGroup(kind, KINDS.get(kind, ""), many) for kind, many in found.items() if many)


def build_method_view(name: str, scores: MethodScores) -> MethodView:
    """One method's scores, with the strongest found; of equals the first."""
    sizes = [abs(score) for score in scores.scores]
    largest = max(sizes, default=0.0)
    return MethodView(name, scores, sizes.index(largest) if largest else None, _power(largest))


def describe_strongest(tokens: Sequence[str], shown: MethodView) -> str:
    """The strongest word with its score, in words: for who sees no colour.

    >>> scores = MethodScores("saliency", True, (0.1, -0.25))
    >>> strongest_told(("fine", "but"), shown_of("leave_one_out", scores))
    'strongest: “but” −0.25'
    """
    if shown.strongest is None:
        return "every word has a score of 0"
    sign = "+" if shown.scores.signed else ""
    score = f"{shown.scores.scores[shown.strongest]:{sign}.3g}".replace("-", "\u2212")
    return f"strongest: “{shorten_word(tokens[shown.strongest])}” {score}"


def shorten_word(word: str, most: int = LONGEST) -> str:
    """A word that is no word but a page of letters, cut.

    >>> shortened("incomprehensible", 8)
    'incompr…'
    """
    return word if len(word) <= most else f"{word[: most - 1]}…"


def describe_question(question: str) -> str:
    """What was read beside the text; its beginning, where it is very long."""
    return f"beside the text: {question[:LONGEST_QUESTION]}"


def describe_prediction(explained: TextExplanation) -> str:
    """How likely the target is, and what was predicted if that is another class."""
    sentence = f"probability {explained.probability:.3f}"
    if explained.predicted == explained.target:
        return f"{sentence}, predicted"
    return f"{sentence}, while {explained.predicted} is predicted"


def describe_refusal(name: str, reason: str) -> str:
    """Which method refused and why; most reasons begin with its name themselves."""
    return reason if reason.startswith(f"{name} ") else f"{name}: {reason}"


def describe_truncation(explained: TextExplanation) -> str:
    """A sentence where the model did not read to the end; nothing otherwise."""
    if not explained.truncated:
        return ""
    unit = "words" if explained.granularity == "word" else "tokens"
    count = len(explained.tokens)
    return f"The text is longer than the model reads: only these {count} {unit} were."


def _power(largest: float) -> int:
    if not largest or SMALLEST <= largest < LARGEST:
        return 0
    return max(LEAST, floor(log10(largest)))
