"""`heedful diffmask`: train an explainer that foresees which words a model can do without."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import (
    Choices,
    CleaningName,
    Fields,
    Limit,
    ModelName,
    Quiet,
    Seed,
    choices,
    progress_bar,
)

if TYPE_CHECKING:
    from heedful.data.dataset import Dataset
    from heedful.models.diffmask.explainer_folder import Explainer
    from heedful.models.protocols import Subject

Epsilon = typer.Option(help="How far the output may move, as KL; 0.1.")


def diffmask(
    model: ModelName,
    data: Annotated[str, typer.Argument(help="Texts of the model's kind; labels are not read.")],
    out: Annotated[Path, typer.Option(help="The explainer folder to write.")],
    epochs: Annotated[int | None, typer.Option(min=1, help="10 unless said.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Texts at once; 32 unless said.")] = None,
    epsilon: Annotated[float | None, Epsilon] = None,
    rate: Annotated[float | None, typer.Option(min=0, help="0.001 unless said.")] = None,
    fields: Fields = None,
    cleaning: CleaningName = None,
    limit: Limit = None,
    subject: Choices = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Train a DiffMask explainer for MODEL on the train split of DATA, for `explain` and `audit`.

    The same command again continues a training that was interrupted.
    """
    from heedful.api.functions import load
    from heedful.pipeline.audit.run_lock import locked
    from heedful.training.diffmask_trainer import Masking
    from heedful.training.fit_diffmask import fit_diffmask

    given = {"epochs": epochs, "batch": batch, "epsilon": epsilon, "rate": rate, "seed": seed}
    recipe = Masking(**{name: one for name, one in given.items() if one is not None})  # type: ignore[arg-type]
    loaded = load(model, **choices(subject))
    train, dev = _read(loaded, data, fields=fields, cleaning=cleaning, limit=limit)
    with locked(out), progress_bar("training", quiet=quiet) as progress:
        found = fit_diffmask(loaded, train, recipe, out=out, dev=dev, progress=progress)
    if not quiet:
        _tell(found, model, data, out)


def _read(
    subject: "Subject", data: str, *, fields: str | None, cleaning: str | None, limit: int | None
) -> tuple["Dataset", "Dataset | None"]:
    """Texts to train on and to choose by; a paper's cleaning may need the labels."""
    from functools import partial

    from heedful.data.dataset import DEV
    from heedful.data.read import read, splits

    some = partial(read, data, fields=fields, cleaning=cleaning)
    if cleaning is None:
        some = partial(some, labelled=False)
    else:
        some = partial(some, labels=subject.labels)
    there = splits(data, cleaning=cleaning)
    dev = some(split="dev") if set(DEV) & set(there) else None
    return some(split="train", limit=limit), dev


def _tell(found: "Explainer", model: str, data: str, out: Path) -> None:
    """Four lines on what came out; one more where the budget was not kept, or binds nobody."""
    told, recipe = found.history, found.history["recipe"]
    typer.echo(
        f"{found.family} on {told['data']['texts']} texts of {data}: epoch {told['best_epoch']} of "
        f"{recipe['epochs']}, {told['cpu_seconds']:.0f} CPU seconds."
    )
    for layer, (moved, kept) in enumerate(zip(told["kl"], told["open"], strict=True)):
        typer.echo(f"Up to layer {layer}: {kept:.0%} of the words stay, KL {moved:.3f}.")
    whole, budget = told["kl_all_hidden"], recipe["epsilon"]
    if not told["within_budget"]:
        typer.echo(f"The budget of {budget:g} was not kept. More epochs may help, or a lower rate.")
    if whole <= 2 * budget:
        typer.echo(f"With every word hidden KL is {whole:.3f}: choose an --epsilon well below.")
    asked = f"--methods diffmask --set diffmask.explainer={out}"
    typer.echo(f"Next: heedful explain {model} TEXT {asked}")
