"""`heedful check`: what works for this model, and what it will cost."""

import json
from pathlib import Path
from typing import Annotated

import typer


def check(
    model: Annotated[str, typer.Argument(help="A model folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what works for MODEL: attention path, parity, methods, checks, expected cost."""
    from heedful.auditing.inspect import inspect
    from heedful.runner.api import load

    found = inspect(load(Path(model)))
    if as_json:
        typer.echo(json.dumps(found))
        return
    cost = found.pop("cpu_seconds_per_1000_texts")
    for key, value in found.items():
        if isinstance(value, dict):
            typer.echo(f"{key}:")
            for name, state in value.items():
                typer.echo(f"  {name:18} {state}")
        else:
            typer.echo(f"{key:15} {', '.join(value) if isinstance(value, list) else value}")
    typer.echo("CPU seconds for 1 000 texts of 20 words:")
    for name, seconds in cost.items():
        typer.echo(f"  {name:18} {seconds:.2f}")
