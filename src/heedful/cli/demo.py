"""`heedful demo`: from nothing to a verdict on real movie reviews."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.audit import run_audit
from heedful.cli.common import Quiet
from heedful.cli.train import train_to

DATA = "sample:movies"


def demo(
    out: Annotated[Path, typer.Option(help="Where the run and its model go.")] = Path("runs/demo"),
    quiet: Quiet = False,
) -> None:
    """Train a small attention model on movie reviews, audit it, print the verdict."""
    from heedful.auditing.plan import Plan
    from heedful.models.store import SETTINGS
    from heedful.training.fit import Recipe

    model = out / "model"
    if (model / SETTINGS).exists():
        if not quiet:
            typer.echo(f"Using the model trained before: {model}")
    else:
        if not quiet:
            typer.echo(
                "Training a BiLSTM with additive attention on 6 800 movie-review sentences …"
            )
        train_to(DATA, model, Recipe(embeddings="glove", min_words=6), quiet=quiet)
    run_audit(Plan(str(model), DATA, min_words=6), out, quiet=quiet)
    if not quiet:
        typer.echo(f'Next: heedful explain {model} "a fine film, but far too long"')
