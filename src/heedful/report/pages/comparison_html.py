"""A comparison as one HTML file that opens offline and asks nothing of anyone."""

from collections.abc import Sequence

from heedful.report.figures.comparison import MOST_PAIRS, forests_of
from heedful.report.figures.draw import svg_of
from heedful.report.pages.comparison_markdown import minus
from heedful.report.pages.comparison_rows import (
    corrected_told,
    groups_of,
    lacking_told,
    meaning_for,
    method_told,
    name_of,
    p_told,
)
from heedful.report.pages.run_html import ARROWS, number
from heedful.report.pages.self_contained_html import joined, policy, templates
from heedful.report.run_records import visible
from heedful.results.comparison.records import SEEDS, Compared
from heedful.results.comparison.requirements import Judged


def compared_page(compared: Compared, required: Sequence[Judged] = ()) -> str:
    """One self-contained page; every name in it is escaped by the template."""
    environment = templates()
    from markupsafe import Markup

    css, js = joined(("page", "compared"), "css"), joined(("theme",), "js")
    environment.filters |= {"visible": visible, "number": number, "minus": minus, "p": p_told}
    environment.filters |= {"name": name_of, "groups": groups_of, "lacking": lacking_told}
    figures = [(one, Markup(svg_of(one))) for one in forests_of(compared)]  # noqa: S704 - drawn here
    return environment.get_template("compared.html.j2").render(
        compared=compared,
        required=required,
        claims=list(dict.fromkeys(name for one in compared.sides for name in one.claims)),
        meaning=meaning_for,
        arrows=ARROWS,
        over_seeds=SEEDS,
        figures=figures,
        undrawn=max(0, len(compared.pairs) - MOST_PAIRS),
        told=(method_told(compared), corrected_told(compared)),
        policy=policy(css=css, js=js),
        css=Markup(css),  # noqa: S704 - ours
        js=Markup(js),  # noqa: S704 - ours
    )
