"""`heedful diffmask`: train an explainer that predicts which words a model does not need."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from heedful.cli import options

if TYPE_CHECKING:
    from heedful.models.diffmask import Explainer

EpsilonOption = Option(help="KL by which the output may change. [default: 0.1]")


def diffmask(
    model: options.Model,
    data: Annotated[str, Argument(help="Texts like those of the model; labels are not read.")],
    out: Annotated[Path, Option(parser=options.path, help="The explainer folder to write.")],
    epochs: Annotated[int | None, Option(min=1, help="[default: 10]")] = None,
    batch: options.Batch = None,
    epsilon: Annotated[float | None, EpsilonOption] = None,
    rate: Annotated[float | None, Option(min=0, help="Learning rate. [default: 0.001]")] = None,
    fields: options.Fields = None,
    cleaning: options.Cleaning = None,
    limit: options.Limit = None,
    subject: options.Subject = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Train a DiffMask explainer for MODEL on the train split of DATA, for `explain` and `audit`.

    The same command continues an interrupted training.
    """
    from heedful.api.functions import load
    from heedful.training.fit_diffmask import Masking, fit_diffmask

    given = {"epochs": epochs, "batch": batch, "epsilon": epsilon, "rate": rate, "seed": seed}
    recipe = Masking(**{name: one for name, one in given.items() if one is not None})  # type: ignore[arg-type]
    loaded = load(model, **options.parse_subject_options(subject))
    # labels are read only where a cleaning may need them
    labels = {"labelled": False} if cleaning is None else {"labels": loaded.labels}
    train, dev = options.read_train_and_dev(
        data, fields=fields, cleaning=cleaning, limit=limit, **labels
    )
    with options.progress_bar("training", quiet=quiet) as progress:
        found = fit_diffmask(loaded, train, recipe, out=out, dev=dev, progress=progress)
    if not quiet:
        _print_summary(found, model, data, out)


def _print_summary(found: "Explainer", model: str, data: str, out: Path) -> None:
    """Print a summary of the training; warn if the budget was exceeded or does not bind."""
    history, recipe = found.history, found.history["recipe"]
    typer.echo(
        f"{found.family} on {history['data']['texts']} texts of {data}: epoch "
        f"{history['best_epoch']} of {recipe['epochs']}, {history['cpu_seconds']:.0f} CPU seconds."
    )
    for layer, (moved, kept) in enumerate(zip(history["kl"], history["open"], strict=True)):
        typer.echo(f"Up to layer {layer}: {kept:.0%} of the words are kept, KL {moved:.3f}.")
    whole, budget = history["kl_all_hidden"], recipe["epsilon"]
    if not history["within_budget"]:
        typer.echo(f"KL exceeds the budget of {budget:g}. Try more epochs or a lower rate.")
    if whole <= 2 * budget:
        typer.echo(f"With all words masked KL is {whole:.3f}: choose an --epsilon well below.")
    asked = f"--methods diffmask --set diffmask.explainer={out}"
    typer.echo(f"Next: heedful explain {model} TEXT {asked}")
