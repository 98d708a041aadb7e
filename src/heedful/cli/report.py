"""`heedful report`: write the report of a run from its records."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from heedful.cli import options


def report(
    run: Annotated[Path, Argument(parser=options.path, help="A run folder.")],
    html: Annotated[Path | None, Option(parser=options.path, help="Write the page here.")] = None,
    markdown: Annotated[
        Path | None, Option(parser=options.path, help="Write a model-card section here.")
    ] = None,
    figures: Annotated[
        Path | None, Option(parser=options.path, help="Write SVG and PNG figures here.")
    ] = None,
    card: Annotated[
        Path | None,
        Option(parser=options.path, help="Write text and figures for a model card here."),
    ] = None,
    reviewer: Annotated[
        Path | None, Option(parser=options.path, help="Write a page to sign, as .html or .md.")
    ] = None,
    details: options.Details = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the report of RUN to RUN/report.html, or the requested files; needs no model.

    With --details alone, print the verdict with the estimates of every check and write nothing.
    """
    from heedful.api.run import Run

    found = Run(run)
    written = []
    if details:
        found.show(details=True)
    if html or not (markdown or figures or card or reviewer or details):
        written.append(found.report(html))
    if markdown:
        written.append(found.write_markdown(markdown))
    if card:
        written.append(found.write_card(card))
    if reviewer:
        written.append(found.reviewer_page(reviewer))
    if figures:
        written += found.figures(figures)
    if not quiet:
        for path in written:
            typer.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
