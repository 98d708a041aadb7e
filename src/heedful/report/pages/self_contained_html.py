"""What makes a page one file that opens offline and asks nothing of anyone."""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.core.errors import RunError

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parents[1] / "templates"


def template_environment() -> "jinja2.Environment":
    """Our templates, under which every text is escaped unless it is ours."""
    try:
        import jinja2
    except ImportError:
        raise RunError("The HTML report needs jinja2: pip install 'heedful[report]'.") from None
    # autoescape is on for every template: nothing here is named .html by chance
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )


def join_assets(names: Iterable[str], kind: str) -> str:
    """Our style sheets or scripts as one."""
    return "".join((TEMPLATES / f"{name}.{kind}").read_text(encoding="utf-8") for name in names)


def render_template(
    environment: "jinja2.Environment",
    template: str,
    *,
    css: Iterable[str],
    js: Iterable[str] = (),
    **values: Any,
) -> str:
    """A template with style sheets and scripts of ours, under a policy that allows no others."""
    from markupsafe import Markup

    style, script = join_assets(css, "css"), join_assets(js, "js")
    return environment.get_template(template).render(
        policy=(
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        css=Markup(style),  # noqa: S704 - ours
        js=Markup(script),  # noqa: S704 - ours
        **values,
    )


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
