"""A comparison as one HTML file that opens offline and asks nothing of anyone."""

from collections.abc import Sequence

from heedful.comparison.records import OVER_SEEDS, ComparisonRecord
from heedful.comparison.requirements import RequirementResult
from heedful.report.figures.comparison import MOST_PAIRS, build_forest_figures
from heedful.report.figures.draw import render_svg
from heedful.report.pages.comparison_markdown import format_difference
from heedful.report.pages.comparison_rows import (
    describe_correction,
    describe_intervals,
    describe_missing,
    display_name,
    find_measure,
    format_p_value,
    group_differences,
)
from heedful.report.pages.section_render import three_decimals
from heedful.report.pages.self_contained_html import join_assets, policy, template_environment
from heedful.report.sections.check_measures import ARROWS
from heedful.results.run_records import sanitise_text


def render_comparison_html(
    compared: ComparisonRecord, required: Sequence[RequirementResult] = ()
) -> str:
    """One self-contained page; every name in it is escaped by the template."""
    environment = template_environment()
    from markupsafe import Markup

    css, js = join_assets(("page", "compared"), "css"), join_assets(("theme",), "js")
    environment.filters |= {
        "visible": sanitise_text,
        "number": three_decimals,
        "minus": format_difference,
        "p": format_p_value,
    }
    environment.filters |= {
        "name": display_name,
        "groups": group_differences,
        "lacking": describe_missing,
    }
    figures = [(one, Markup(render_svg(one))) for one in build_forest_figures(compared)]  # noqa: S704 - drawn here
    return environment.get_template("compared.html.j2").render(
        compared=compared,
        required=required,
        claims=list(dict.fromkeys(name for one in compared.sides for name in one.claims)),
        meaning=find_measure,
        arrows=ARROWS,
        over_seeds=OVER_SEEDS,
        figures=figures,
        undrawn=max(0, len(compared.pairs) - MOST_PAIRS),
        notes=(describe_intervals(compared), describe_correction(compared)),
        policy=policy(css=css, js=js),
        css=Markup(css),  # noqa: S704 - ours
        js=Markup(js),  # noqa: S704 - ours
    )
