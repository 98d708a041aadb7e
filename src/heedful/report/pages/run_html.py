"""The page as one HTML file that opens offline and asks nothing of anyone."""

import json
from dataclasses import asdict, fields
from math import isnan
from typing import Any

from heedful.core.records import Estimate
from heedful.report.figures.draw import render_svg
from heedful.report.pages.section_render import render_section
from heedful.report.pages.self_contained_html import join_assets, policy, template_environment
from heedful.report.sections.example_texts import SCORES, ExampleText
from heedful.report.sections.layers import summarise_layers
from heedful.report.sections.method_agreement import describe_length_limits, describe_nearest
from heedful.report.sections.page import Page, build_page
from heedful.results.figure_data import format_two_decimals
from heedful.results.run_records import RunRecords

# what could end a script element or a line of it, in any reading of HTML or JavaScript
UNSAFE_IN_SCRIPT = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
STEPS = 20  # of colour in a table; the style sheet has a class for each
ARROWS = {"up": "↑", "down": "↓", "none": ""}


def render_html(records: RunRecords) -> str:
    """One self-contained page from the records of a run; no model, no network."""
    environment = template_environment()
    environment.filters |= {"number": three_decimals, "place": ruler_position, "depth": heat_class}
    environment.filters |= {"summary": summarise_layers, "short": two_decimals}
    environment.filters |= {
        "nearest": describe_nearest,
        "describe_length_limits": describe_length_limits,
    }
    page = build_page(records)
    own = [render_section(environment, one) for one in page.sections]
    return environment.get_template("page.html.j2").render(**_shown(page), own_sections=own)


def _shown(page: Page) -> dict[str, Any]:
    from markupsafe import Markup

    more = ("layers",) if page.layers or page.maps else ()
    looked = more or (("layers",) if page.identified else ())
    styled = ("methods", *looked) if page.methods else looked
    styled = (*styled, "retrained") if page.retraining else styled
    css, js = join_assets(("page", *styled), "css"), join_assets(("theme", "page", *more), "js")
    # these are ours, or made by ours from escaped text; all else is escaped by the template
    own = {"css": css, "js": js}
    own |= {"data": script_json(_sentences(page)), "maps": script_json(_maps(page))}
    drawn = [one for one in page.layer_pictures if one.kind != "heatmap"]  # those are a table
    return {
        "page": page,
        "arrows": ARROWS,
        "policy": policy(css=css, js=js),
        "figures": [(one, Markup(render_svg(one))) for one in page.pictures],  # noqa: S704
        "method_figures": [(one, Markup(render_svg(one))) for one in page.method_pictures],  # noqa: S704
        "layer_figures": [(one, Markup(render_svg(one))) for one in drawn],  # noqa: S704
        "identified_figures": [(one, Markup(render_svg(one))) for one in page.identified_pictures],  # noqa: S704
        "retrained_figures": {
            one.name: (one, Markup(render_svg(one)))  # noqa: S704
            for one in page.retrained_pictures
        },
        **{name: Markup(text) for name, text in own.items()},  # noqa: S704
    }


def _sentences(page: Page) -> dict[str, Any]:
    names = [one.name for one in fields(ExampleText)]  # asdict would copy every score
    shown = [{name: getattr(one, name) for name in names} for one in page.sentences]
    return {"scores": SCORES, "sentences": shown}


def _maps(page: Page) -> dict[str, Any]:
    if page.maps is None:
        return {}
    layers = page.layers.layers if page.layers else ()
    taus = {f"{one.number} {head.number}": head.tau.value for one in layers for head in one.heads}
    return {
        "layer": page.audited.layer if page.audited else None,
        "position": page.audited.position if page.audited else None,
        "tau": {place: round(tau, 4) for place, tau in taus.items() if not isnan(tau)},
        "texts": [asdict(one) for one in page.maps.texts],
    }


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element, whatever text it holds.

    >>> script_json({"text": "</script>"})
    '{"text":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(UNSAFE_IN_SCRIPT)


def three_decimals(value: float | None) -> str:
    """Three decimals with a true minus sign; a dash where there is no number.

    >>> three_decimals(-0.25), three_decimals(-1e-9), three_decimals(float("nan"))
    ('−0.250', '0.000', '–')
    """
    return "–" if value is None or isnan(value) else f"{value:z.3f}".replace("-", "\u2212")


def two_decimals(value: float) -> str:
    """Two decimals, for where there is room for no more.

    >>> two_decimals(-0.25), two_decimals(float("nan"))
    ('−0.25', '–')
    """
    return "–" if isnan(value) else format_two_decimals(value)


def heat_class(value: float, strongest: float) -> str:
    """The class of a colour: its kind by the sign, its depth as a share of the strongest.

    >>> heat_class(-0.1, 0.2), heat_class(float("nan"), 0.2)
    ('minus s10', 'none')
    """
    if isnan(value):
        return "none"
    return f"{'minus' if value < 0 else 'plus'} s{round(STEPS * min(1.0, abs(value) / strongest))}"


def ruler_position(estimate: Estimate, span: tuple[float, float]) -> dict[str, float]:
    """Where an estimate and its interval lie on a ruler of length 100.

    >>> ruler_position(Estimate(0.5, 0.25, 0.75, 9), (0.0, 1.0))
    {'value': 50.0, 'low': 25.0, 'high': 75.0}
    """
    low, high = span
    ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    ends = {name: estimate.value if isnan(one) else one for name, one in ends.items()}
    return {
        name: round(100 * min(1.0, max(0.0, (one - low) / (high - low))), 2)
        for name, one in ends.items()
    }
