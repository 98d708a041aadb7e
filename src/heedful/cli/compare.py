"""`heedful compare`: compare runs, or methods of one run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from heedful.cli import options
from heedful.core.errors import ConfigError


def compare(
    runs: Annotated[
        list[Path], Argument(parser=options.path, metavar="RUN...", help="Run folders.")
    ],
    methods: Annotated[str | None, Option(help="Methods of one run to compare, by commas.")] = None,
    unpaired: Annotated[
        bool,
        Option("--unpaired", help="Compare runs on different texts, as independent samples."),
    ] = False,
    correction: Annotated[str, Option(help="Correction of p-values: holm, bh or none.")] = "holm",
    level: Annotated[
        float | None, Option(help="Confidence level. [default: that of the first run]")
    ] = None,
    require: Annotated[
        list[str] | None,
        Option(help="Exit with 1 unless true: degree>=-0.05, same-answer; repeatable."),
    ] = None,
    as_json: options.Json = False,
    csv: Annotated[
        Path | None, Option(parser=options.path, help="Write every difference here.")
    ] = None,
    markdown: Annotated[
        Path | None, Option(parser=options.path, help="Write the tables here.")
    ] = None,
    html: options.Html = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare runs with the first of them: paired differences, intervals, corrected p-values."""
    from heedful.api.comparison import CSV_MARK
    from heedful.api.comparison import compare as compare_runs
    from heedful.comparison.requirements import parse_requirement
    from heedful.report.escaping import escape_control_characters
    from heedful.results.outputs import HTML_MARK, MARKDOWN_MARK, require_output

    chosen = options.split_names(methods)
    if methods is not None and len(chosen) < 2:
        raise ConfigError("--methods takes two methods or more, by commas.")
    for rule in require or ():
        parse_requirement(rule)  # raises before anything is read
    for path, mark in ((csv, CSV_MARK), (markdown, MARKDOWN_MARK), (html, HTML_MARK)):
        if path:
            require_output(path, mark)  # before anything is computed or written
    found = compare_runs(
        *runs, methods=chosen, paired=not unpaired, correction=correction, level=level
    ).require(*(require or ()))
    writers = ((csv, found.to_csv), (markdown, found.to_markdown), (html, found.to_html))
    written = [write(path) for path, write in writers if path]
    if as_json:
        typer.echo(json.dumps(found.to_dict(), allow_nan=False))
    elif not quiet:
        replace(found, required=()).show()
        for path in written:
            typer.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
    for one in found.required:
        if not one.met or not (quiet or as_json):
            typer.echo(f"heedful: {escape_control_characters(str(one))}", err=not one.met)
    if not found.met:
        raise typer.Exit(1)
