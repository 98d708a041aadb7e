"""`heedful explain`: one text, several methods side by side."""

import json
from typing import Annotated

import typer

from heedful.cli.common import Choices, ModelName, Seed, choices, names


def explain(
    model: ModelName,
    text: Annotated[str, typer.Argument(help="The text to explain.")],
    methods: Annotated[
        str | None, typer.Option(help="Methods, by commas; all unless said.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="A class; the predicted one unless said.")
    ] = None,
    granularity: Annotated[str, typer.Option(help="word or token.")] = "word",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    numbers: Annotated[bool, typer.Option("--numbers", help="Print each word's score.")] = False,
    subject: Choices = None,
    seed: Seed = 0,
) -> None:
    """Explain one TEXT by several methods, words coloured by their scores."""
    from heedful.runner.api import explain as explain_text

    found = explain_text(
        model,
        text,
        methods=names(methods),
        target=target,
        granularity=granularity,
        seed=seed,
        **choices(subject),
    )
    if as_json:
        typer.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        found.show(numbers=numbers)
