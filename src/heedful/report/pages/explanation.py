"""An explanation of one text: what is shown of it, as a page and as a piece of a notebook.

The terminal prints the same words (`report.terminal.coloured_words`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from heedful.report.escaping import shorten_word
from heedful.report.pages.section_render import heat_class
from heedful.report.pages.self_contained_html import render_template, template_environment
from heedful.results.explanation import MethodScores, TextExplanation
from heedful.results.run_records import sanitise_text

KINDS = {
    "attention": "Where the model looks, whatever the output then makes of it.",
    "sensitivity": "How fast the output moves when a word's vector moves a little.",
    "saliency": "What each word, as it stands here, adds to this output or takes from it.",
    "control": "Knows nothing of model or meaning: what the others must differ from.",
}
MOST_WORDS = 500  # on a page; a browser can hardly hold more
LONGEST = 40  # characters of a word in a sentence
LONGEST_QUESTION = 1000
SMALLEST, LARGEST = 0.01, 1000.0  # outside of which numbers are shown in powers of ten
LEAST = -300  # the smallest power of ten that is a normal number
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class MethodView:
    """One method: its name, its scores, and the power of ten to show them in.

    `strongest` is the place of the largest score, whatever its sign; None if all are 0.
    """

    name: str
    scores: MethodScores
    strongest: int | None
    power: int

    @property
    def facts(self) -> tuple[str, ...]:
        """Whether it has a sign, what is explained, and every setting that is not the default."""
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
        text = self._format(score / 10.0**self.power, ".3f")
        return "0.000" if text[1:] == "0.000" else text

    def exact(self, score: float) -> str:
        """A score with three significant digits."""
        return self._format(score, ".3g")

    def _format(self, score: float, digits: str) -> str:
        sign = "+" if self.scores.signed else ""
        return f"{score:{sign}{digits}}".replace("-", "\u2212")

    def describe(self, token: str, score: float) -> str:
        """A word with its score, and how that compares with the strongest."""
        share = abs(score) / self.largest
        return f"{shorten_word(token, LONGEST)}: {self.exact(score)}, {share:.0%} of the strongest"

    def colour(self, score: float) -> str:
        """The class of a word's colour."""
        return heat_class(score, self.largest)


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
    if not largest:
        return MethodView(name, scores, None, 0)
    power = 0 if SMALLEST <= largest < LARGEST else max(LEAST, floor(log10(largest)))
    return MethodView(name, scores, sizes.index(largest), power)


def describe_strongest(tokens: Sequence[str], shown: MethodView) -> str:
    """The strongest word with its score, in words: colour alone cannot be read by everyone.

    >>> view = build_method_view("leave_one_out", MethodScores("saliency", True, (0.1, -0.25)))
    >>> describe_strongest(("fine", "but"), view)
    'strongest: “but” −0.25'
    """
    if shown.strongest is None:
        return "every word has a score of 0"
    score = shown.exact(shown.scores.scores[shown.strongest])
    return f"strongest: “{shorten_word(tokens[shown.strongest], LONGEST)}” {score}"


def describe_question(question: str) -> str:
    """What the model read with the text; its beginning, where it is very long."""
    return f"beside the text: {question[:LONGEST_QUESTION]}"


def describe_prediction(explained: TextExplanation) -> str:
    """How likely the target is, and what was predicted if that is another class."""
    same = explained.predicted == explained.target
    predicted = "predicted" if same else f"while {explained.predicted} is predicted"
    return f"probability {explained.probability:.3f}, {predicted}"


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


def render_explanation_html(explained: TextExplanation, *, model: str = "") -> str:
    """One self-contained page: no request to anywhere, readable without its script."""
    css, js = ("page", "explained"), ("theme", "explained")
    return _render("explained.html.j2", explained, model, css=css, js=js)


def render_explanation_fragment(explained: TextExplanation, *, model: str = "") -> str:
    """A piece of a page that brings its own style, for notebooks."""
    return _render("explained_fragment.html.j2", explained, model, css=("notebook", "explained"))


def _render(template: str, explained: TextExplanation, model: str, **assets: Any) -> str:
    environment, groups = template_environment(), group_by_kind(explained)
    methods = [one for group in groups for one in group.methods]
    environment.filters["shown"] = sanitise_text  # every text from outside passes through it
    return render_template(
        environment,
        template,
        explained=explained,
        model=model,
        text=explained.text[: 20 * MOST_WORDS],
        prediction=describe_prediction(explained),
        notes=list(_notes(explained)),
        groups=groups,
        methods=methods,
        signed=any(one.scores.signed for one in methods),
        words=explained.tokens[:MOST_WORDS],
        strongest=describe_strongest,
        refused=[describe_refusal(*one) for one in explained.refused.items()],
        **assets,
    )


def _notes(explained: TextExplanation) -> Iterator[str]:
    if explained.question is not None:
        yield describe_question(explained.question)
    if explained.truncated:
        yield describe_truncation(explained)
    if (more := len(explained.tokens) - MOST_WORDS) > 0:
        yield (f"The first {MOST_WORDS} are shown; {more} more are in the JSON and the data frame.")
