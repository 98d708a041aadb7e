"""An explanation as one HTML file that opens offline, or as a piece of a notebook."""

from dataclasses import dataclass
from typing import Any

from heedful.report.pages.explanation_content import (
    KindGroup,
    MethodView,
    describe_prediction,
    describe_question,
    describe_refusal,
    describe_strongest,
    describe_truncation,
    group_by_kind,
    shorten_word,
)
from heedful.report.pages.section_render import heat_class
from heedful.report.pages.self_contained_html import join_assets, policy, template_environment
from heedful.results.explanation import TextExplanation
from heedful.results.run_records import sanitise_text

MOST = 500  # words on a page; more of them nobody looks at, and a browser can hardly hold them


@dataclass(frozen=True, slots=True)
class WordCell:
    """One word under one method: its score in words, and the class of its colour."""

    number: str
    title: str
    colour: str
    score: str


@dataclass(frozen=True, slots=True)
class MethodCells:
    """One method with a cell for every word that is shown."""

    name: str
    kind: str
    facts: tuple[str, ...]
    strongest: str
    unit: str
    cells: tuple[WordCell, ...]


@dataclass(frozen=True, slots=True)
class ExplanationView:
    """Everything a page shows. Texts in it come from users: the template escapes them."""

    model: str
    text: str
    target: str
    prediction: str
    granularity: str
    tokens: tuple[str, ...]
    notes: tuple[str, ...]
    groups: tuple[tuple[KindGroup, tuple[MethodCells, ...]], ...]
    signed: bool
    refused: tuple[str, ...]

    @property
    def rows(self) -> tuple[MethodCells, ...]:
        """All methods, kind by kind."""
        return tuple(row for _, rows in self.groups for row in rows)


def render_explanation_html(explained: TextExplanation, *, model: str = "") -> str:
    """One self-contained page: no request to anywhere, readable without its script."""
    css, js = join_assets(("page", "explained"), "css"), join_assets(("theme", "explained"), "js")
    own = {"css": css, "js": js}
    return _rendered("explained.html.j2", explained, model, own, policy=policy(css=css, js=js))


def render_explanation_fragment(explained: TextExplanation, *, model: str = "") -> str:
    """A piece of a page that brings its own style, for notebooks."""
    own = {"css": join_assets(("notebook", "explained"), "css")}
    return _rendered("explained_fragment.html.j2", explained, model, own)


def _rendered(
    template: str, explained: TextExplanation, model: str, own: dict[str, str], **rest: Any
) -> str:
    environment = template_environment()
    from markupsafe import Markup

    ours = {name: Markup(text) for name, text in own.items()}  # noqa: S704 - style and script
    view = build_explanation_view(explained, model=model)
    return environment.get_template(template).render(view=view, **ours, **rest)


def build_explanation_view(explained: TextExplanation, *, model: str = "") -> ExplanationView:
    """What the page shows of an explanation; of a very long text only the beginning."""
    tokens = tuple(map(sanitise_text, explained.tokens[:MOST]))
    groups = group_by_kind(explained)
    return ExplanationView(
        model=sanitise_text(model),
        text=sanitise_text(explained.text[: 20 * MOST]),
        target=sanitise_text(explained.target),
        prediction=sanitise_text(describe_prediction(explained)),
        granularity=explained.granularity,
        tokens=tokens,
        notes=tuple(_notes(explained)),
        groups=tuple(
            (one, tuple(_row(method, explained.tokens, tokens) for method in one.methods))
            for one in groups
        ),
        signed=any(one.scores.signed for group in groups for one in group.methods),
        refused=tuple(sanitise_text(describe_refusal(*one)) for one in explained.refused.items()),
    )


def _notes(explained: TextExplanation) -> list[str]:
    notes = (
        [] if explained.question is None else [sanitise_text(describe_question(explained.question))]
    )
    notes += [describe_truncation(explained)] if explained.truncated else []
    if (more := len(explained.tokens) - MOST) > 0:
        notes.append(f"The first {MOST} are shown; {more} more are in the JSON and the data frame.")
    return notes


def _row(method: MethodView, every: tuple[str, ...], tokens: tuple[str, ...]) -> MethodCells:
    one = method.scores
    return MethodCells(
        name=sanitise_text(method.name),
        kind=one.kind,
        facts=tuple(map(sanitise_text, method.facts)),
        strongest=sanitise_text(describe_strongest(every, method)),
        unit=method.unit,
        cells=tuple(
            _cell(method, token, score) for token, score in zip(tokens, one.scores, strict=False)
        ),
    )


def _cell(method: MethodView, token: str, score: float) -> WordCell:
    sign = "+" if method.scores.signed else ""
    text = f"{score:{sign}.3g}".replace("-", "\u2212")
    share = abs(score) / method.largest
    return WordCell(
        number=method.number(score),
        title=f"{shorten_word(token)}: {text}, {share:.0%} of the strongest",
        colour=heat_class(score, method.largest),
        score=repr(score),
    )
