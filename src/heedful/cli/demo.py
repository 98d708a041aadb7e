"""`heedful demo`: train a model on movie reviews and audit it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from heedful.cli.audit import audit_and_print
from heedful.cli.options import DetailsOption, QuietOption
from heedful.cli.train import train_and_save

if TYPE_CHECKING:
    from heedful.training.recipe import FineTuning, Recipe

DATA = "sample:movies"
TRAIN_LIMIT, AUDIT_LIMIT = 3000, 200  # sentences for the transformer; more take many CPU minutes
MIN_WORDS = 6
CHECKS: tuple[str, ...] = ()  # all


def demo(
    out: Annotated[
        Path | None,
        Option(help="Folder of run and model. [default: runs/demo or runs/demo-transformer]"),
    ] = None,
    transformer: Annotated[
        bool, Option("--transformer", help="Fine-tune MiniLM instead of a BiLSTM.")
    ] = False,
    details: DetailsOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a small attention model on movie reviews, audit it, print the verdict."""
    from heedful.training.recipe import Recipe

    if not transformer:
        message = "Training a BiLSTM with additive attention on 6 800 movie-review sentences …"
        recipe = Recipe(embeddings="glove", min_words=MIN_WORDS)
        _train_and_audit(
            out or Path("runs/demo"), recipe, message=None if quiet else message, details=details
        )
        return
    from heedful.models.transformer.new_classifier import MINILM
    from heedful.training.recipe import FineTuning

    folder = out or Path("runs/demo-transformer")
    message = f"Fine-tuning MiniLM on {TRAIN_LIMIT} movie-review sentences …"
    tuning, few = FineTuning(MINILM, epochs=2), (TRAIN_LIMIT, AUDIT_LIMIT)
    _train_and_audit(
        folder, tuning, message=None if quiet else message, details=details, limits=few
    )


def _train_and_audit(
    out: Path,
    recipe: "Recipe | FineTuning",
    *,
    message: str | None,
    details: bool,
    limits: tuple[int | None, int | None] = (None, None),
) -> None:
    """Train a model unless it exists, then audit it; print nothing if `message` is None."""
    from heedful.models.recurrent.model_folder import MODEL_SETTINGS_FILE
    from heedful.pipeline.plan.plan import Plan

    model, quiet = out / "model", message is None
    trained = any((model / name).exists() for name in (MODEL_SETTINGS_FILE, "config.json"))
    if message:
        typer.echo(f"Using the trained model: {model}" if trained else message)
    if not trained:
        train_and_save(DATA, model, recipe, limit=limits[0], quiet=quiet)
    plan = Plan(str(model), DATA, checks=CHECKS, min_words=MIN_WORDS, limit=limits[1])
    audit_and_print(plan, out, details=details, quiet=quiet)
    if not quiet:
        typer.echo(f'Next: heedful explain {model} "a fine film, but far too long"')
