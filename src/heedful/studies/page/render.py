"""Render the page of a study as self-contained HTML and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.report.figures.draw import render_svg
from heedful.report.pages.self_contained_html import join_assets, policy, template_environment
from heedful.studies.page.page_parts import PageTable, Section
from heedful.studies.study import Study


@dataclass(frozen=True)
class StudyHeading:
    """The heading above the sections."""

    study: Study
    line: str  # date, versions, seeds
    warnings: tuple[str, ...] = ()


def render_study_html(heading: StudyHeading, sections: Sequence[Section]) -> str:
    """One self-contained page; the template escapes all text."""
    environment = template_environment()
    from markupsafe import Markup

    css, js = join_assets(("page", "compared", "reproduced"), "css"), join_assets(("theme",), "js")
    drawn = {
        picture.name: Markup(render_svg(picture))  # noqa: S704 - our own SVG
        for one in sections
        for picture in one.figures
    }
    return environment.get_template("reproduced.html.j2").render(
        heading=heading,
        sections=sections,
        drawn=drawn,
        policy=policy(css=css, js=js),
        css=Markup(css),  # noqa: S704 - ours
        js=Markup(js),  # noqa: S704 - ours
    )


def render_study_markdown(
    heading: StudyHeading, sections: Sequence[Section], *, figures: str = ""
) -> str:
    """The page in Markdown; `figures` is the folder of the figures, relative to the page."""
    study = heading.study
    parts = [f"# {study.title}, run again", f"{study.reference}. {heading.line}"]
    parts += [f"**{one}**" for one in heading.warnings]
    for one in sections:
        parts += [f"## {one.title}", *one.words]
        parts += [_table(table) for table in one.tables]
        for summary, table in one.folded:
            parts.append(
                f"<details><summary>{_escape_cell(summary)}</summary>\n\n{_table(table)}\n\n</details>"
            )
        if figures:
            parts += [
                f"![{_escape_cell(picture.title)}]({figures}/{picture.name}.svg)\n\n"
                f"*{_escape_cell(picture.title)}. {_escape_cell(picture.caption)}*"
                for picture in one.figures
            ]
    return "\n\n".join(parts) + "\n"


def write_svgs(sections: Sequence[Section], folder: Path) -> list[Path]:
    """Write every figure to its own file, and delete those of an earlier page."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    written = []
    for picture in (picture for one in sections for picture in one.figures):
        path = folder / f"{picture.name}.svg"
        path.write_text(render_svg(picture), encoding="utf-8")
        written.append(path)
    return written


def _table(table: PageTable) -> str:
    lines = [
        "| " + " | ".join(map(_escape_cell, table.head)) + " |",
        "| " + " | ".join("---" for _ in table.head) + " |",
        *("| " + " | ".join(map(_escape_cell, row)) + " |" for row in table.rows),
    ]
    caption = f"{_escape_cell(table.caption)}\n\n" if table.caption else ""
    return caption + "\n".join(lines)


def _escape_cell(text: str) -> str:
    """Escape what would end a table cell or be read as HTML."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return " ".join(plain.split())
