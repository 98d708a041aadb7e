"""`heedful benchmark`: score methods on planted models of which is known which words matter."""

import json
from typing import Annotated

import typer
from typer import Argument, Option

from heedful.cli import options


def benchmark(
    methods: Annotated[
        list[str] | None,
        Argument(metavar="[METHOD]...", help="Methods by name. [default: as explain runs unasked]"),
    ] = None,
    seed: options.Seed = 0,
    texts: Annotated[int | None, Option(min=1, help="Texts of each kind. [default: 20]")] = None,
    kinds: Annotated[
        str | None, Option(help="Kinds or families by commas. [default: all kinds]")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Score methods on planted models: how often are their top words those that matter?"""
    from heedful.planted.scoring.score_methods import BENCHMARK_TEXTS, score_methods

    with options.progress_bar("benchmark", quiet=quiet) as progress:
        found = score_methods(
            methods or None,
            kinds=None if kinds is None else options.split_names(kinds),
            texts=texts or BENCHMARK_TEXTS,
            seed=seed,
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps(found.to_dict(), allow_nan=False))
    elif not quiet:
        found.show()
