"""`heedful demo`: train a model on movie reviews and audit it."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from heedful.cli import options
from heedful.cli.audit import audit_and_print
from heedful.cli.train import train_and_save

DATA = "sample:movies"
TRAIN_LIMIT, AUDIT_LIMIT = 3000, 200  # sentences for the transformer; more take many CPU minutes
MIN_WORDS = 6
CHECKS: tuple[str, ...] = ()  # all


def demo(
    out: Annotated[
        Path | None,
        Option(
            parser=options.path,
            help="Folder of run and model. [default: runs/demo or runs/demo-transformer]",
        ),
    ] = None,
    transformer: Annotated[
        bool, Option("--transformer", help="Fine-tune MiniLM instead of a BiLSTM.")
    ] = False,
    details: options.Details = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a small attention model on movie reviews, audit it, print the verdict."""
    from heedful.models.recurrent.model_folder import MODEL_SETTINGS_FILE
    from heedful.pipeline.plan.plan import Plan
    from heedful.training.recipe import FineTuning, Recipe

    recipe: Recipe | FineTuning = Recipe(embeddings="glove", min_words=MIN_WORDS)
    message = "Training a BiLSTM with additive attention on 6 800 movie-review sentences …"
    limits: tuple[int | None, int | None] = (None, None)
    if transformer:
        from heedful.models.transformer.new_classifier import MINILM

        recipe, limits = FineTuning(MINILM, epochs=2), (TRAIN_LIMIT, AUDIT_LIMIT)
        message = f"Fine-tuning MiniLM on {TRAIN_LIMIT} movie-review sentences …"
    out = out or Path("runs/demo-transformer" if transformer else "runs/demo")
    model = out / "model"
    trained = any((model / name).exists() for name in (MODEL_SETTINGS_FILE, "config.json"))
    if not quiet:
        typer.echo(f"Using the trained model: {model}" if trained else message)
    if not trained:
        train_and_save(DATA, model, recipe, limit=limits[0], quiet=quiet)
    plan = Plan(str(model), DATA, checks=CHECKS, min_words=MIN_WORDS, limit=limits[1])
    audit_and_print(plan, out, details=details, quiet=quiet)
    if not quiet:
        typer.echo(f'Next: heedful explain {model} "a fine film, but far too long"')
