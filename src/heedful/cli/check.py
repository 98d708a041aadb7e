"""`heedful check`: what works for a model, and the expected cost."""

import json

import typer

from heedful.cli import options


def check(
    model: options.Model,
    subject: options.Subject = None,
    as_json: options.Json = False,
) -> None:
    """Report what works for MODEL: attention path, parity, methods, checks, expected cost."""
    from heedful.api.functions import load
    from heedful.pipeline.audit.capabilities import inspect_subject

    report = inspect_subject(load(model, **options.parse_subject_options(subject)))
    if as_json:
        typer.echo(json.dumps(report))
        return
    cost, minutes = (report.pop(f"cpu_{unit}_per_1000_texts") for unit in ("seconds", "minutes"))
    for key, value in report.items():
        if isinstance(value, dict):
            typer.echo(f"{key}:")
            for name, state in value.items():
                typer.echo(f"  {name:20} {state}")
        else:
            typer.echo(f"{key:15} {', '.join(value) if isinstance(value, list) else value}")
    typer.echo(f"CPU seconds for 1 000 texts of 20 words ({minutes} minutes in all):")
    for name, seconds in cost.items():
        typer.echo(f"  {name:20} {seconds:.2f}")
