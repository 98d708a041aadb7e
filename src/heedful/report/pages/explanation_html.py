"""An explanation as one HTML file that opens offline, or as a piece of a notebook."""

from dataclasses import dataclass
from typing import Any

from heedful.report.pages.explanation_content import (
    Group,
    Shown,
    groups_of,
    prediction_told,
    question_told,
    refusal_told,
    shortened,
    strongest_told,
    truncated_told,
)
from heedful.report.pages.run_html import depth
from heedful.report.pages.self_contained_html import joined, policy, templates
from heedful.report.run_records import visible
from heedful.results.explanation import Explained

MOST = 500  # words on a page; more of them nobody looks at, and a browser can hardly hold them


@dataclass(frozen=True, slots=True)
class Cell:
    """One word under one method: its score in words, and the class of its colour."""

    number: str
    title: str
    colour: str
    score: str


@dataclass(frozen=True, slots=True)
class Row:
    """One method with a cell for every word that is shown."""

    name: str
    kind: str
    facts: tuple[str, ...]
    strongest: str
    unit: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class View:
    """Everything a page shows. Texts in it come from users: the template escapes them."""

    model: str
    text: str
    target: str
    prediction: str
    granularity: str
    tokens: tuple[str, ...]
    notes: tuple[str, ...]
    groups: tuple[tuple[Group, tuple[Row, ...]], ...]
    signed: bool
    refused: tuple[str, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All methods, kind by kind."""
        return tuple(row for _, rows in self.groups for row in rows)


def explained_page(explained: Explained, *, model: str = "") -> str:
    """One self-contained page: no request to anywhere, readable without its script."""
    css, js = joined(("page", "explained"), "css"), joined(("theme", "explained"), "js")
    own = {"css": css, "js": js}
    return _rendered("explained.html.j2", explained, model, own, policy=policy(css=css, js=js))


def explained_fragment(explained: Explained, *, model: str = "") -> str:
    """A piece of a page that brings its own style, for notebooks."""
    own = {"css": joined(("notebook", "explained"), "css")}
    return _rendered("explained_fragment.html.j2", explained, model, own)


def _rendered(
    template: str, explained: Explained, model: str, own: dict[str, str], **rest: Any
) -> str:
    environment = templates()
    from markupsafe import Markup

    ours = {name: Markup(text) for name, text in own.items()}  # noqa: S704 - style and script
    view = view_of(explained, model=model)
    return environment.get_template(template).render(view=view, **ours, **rest)


def view_of(explained: Explained, *, model: str = "") -> View:
    """What the page shows of an explanation; of a very long text only the beginning."""
    tokens = tuple(map(visible, explained.tokens[:MOST]))
    groups = groups_of(explained)
    return View(
        model=visible(model),
        text=visible(explained.text[: 20 * MOST]),
        target=visible(explained.target),
        prediction=visible(prediction_told(explained)),
        granularity=explained.granularity,
        tokens=tokens,
        notes=tuple(_notes(explained)),
        groups=tuple(
            (one, tuple(_row(method, explained.tokens, tokens) for method in one.methods))
            for one in groups
        ),
        signed=any(one.scores.signed for group in groups for one in group.methods),
        refused=tuple(visible(refusal_told(*one)) for one in explained.refused.items()),
    )


def _notes(explained: Explained) -> list[str]:
    told = [] if explained.question is None else [visible(question_told(explained.question))]
    told += [truncated_told(explained)] if explained.truncated else []
    if (more := len(explained.tokens) - MOST) > 0:
        told.append(f"The first {MOST} are shown; {more} more are in the JSON and the data frame.")
    return told


def _row(method: Shown, every: tuple[str, ...], tokens: tuple[str, ...]) -> Row:
    one = method.scores
    return Row(
        name=visible(method.name),
        kind=one.kind,
        facts=tuple(map(visible, method.facts)),
        strongest=visible(strongest_told(every, method)),
        unit=method.unit,
        cells=tuple(
            _cell(method, token, score) for token, score in zip(tokens, one.scores, strict=False)
        ),
    )


def _cell(method: Shown, token: str, score: float) -> Cell:
    sign = "+" if method.scores.signed else ""
    told = f"{score:{sign}.3g}".replace("-", "\u2212")
    share = abs(score) / method.largest
    return Cell(
        number=method.number(score),
        title=f"{shortened(token)}: {told}, {share:.0%} of the strongest",
        colour=depth(score, method.largest),
        score=repr(score),
    )
