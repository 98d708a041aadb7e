"""`heedful diffmask`: train an explainer that foresees which words a model can do without."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import (
    CleaningOption,
    FieldsOption,
    LimitOption,
    ModelArgument,
    QuietOption,
    SeedOption,
    SubjectOption,
    parse_subject_options,
    progress_bar,
)

if TYPE_CHECKING:
    from heedful.data.dataset import Dataset
    from heedful.models.diffmask.explainer_folder import Explainer
    from heedful.models.protocols import Subject

EpsilonOption = typer.Option(help="How far the output may move, as KL; 0.1.")


def diffmask(
    model: ModelArgument,
    data: Annotated[str, typer.Argument(help="Texts of the model's kind; labels are not read.")],
    out: Annotated[Path, typer.Option(help="The explainer folder to write.")],
    epochs: Annotated[int | None, typer.Option(min=1, help="10 unless said.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Texts at once; 32 unless said.")] = None,
    epsilon: Annotated[float | None, EpsilonOption] = None,
    rate: Annotated[float | None, typer.Option(min=0, help="0.001 unless said.")] = None,
    fields: FieldsOption = None,
    cleaning: CleaningOption = None,
    limit: LimitOption = None,
    subject: SubjectOption = None,
    seed: SeedOption = 0,
    quiet: QuietOption = False,
) -> None:
    """Train a DiffMask explainer for MODEL on the train split of DATA, for `explain` and `audit`.

    The same command again continues a training that was interrupted.
    """
    from heedful.api.functions import load
    from heedful.pipeline.audit.run_lock import lock_folder
    from heedful.training.fit_diffmask import Masking, fit_diffmask

    given = {"epochs": epochs, "batch": batch, "epsilon": epsilon, "rate": rate, "seed": seed}
    recipe = Masking(**{name: one for name, one in given.items() if one is not None})  # type: ignore[arg-type]
    loaded = load(model, **parse_subject_options(subject))
    train, dev = _read(loaded, data, fields=fields, cleaning=cleaning, limit=limit)
    with lock_folder(out), progress_bar("training", quiet=quiet) as progress:
        found = fit_diffmask(loaded, train, recipe, out=out, dev=dev, progress=progress)
    if not quiet:
        _print_summary(found, model, data, out)


def _read(
    subject: "Subject", data: str, *, fields: str | None, cleaning: str | None, limit: int | None
) -> tuple["Dataset", "Dataset | None"]:
    """Texts to train on and to choose by; a paper's cleaning may need the labels."""
    from functools import partial

    from heedful.data.dataset import DEV_NAMES
    from heedful.data.read import read, splits

    some = partial(read, data, fields=fields, cleaning=cleaning)
    if cleaning is None:
        some = partial(some, labelled=False)
    else:
        some = partial(some, labels=subject.labels)
    there = splits(data, cleaning=cleaning)
    dev = some(split="dev") if set(DEV_NAMES) & set(there) else None
    return some(split="train", limit=limit), dev


def _print_summary(found: "Explainer", model: str, data: str, out: Path) -> None:
    """Four lines on what came out; one more where the budget was not kept, or binds nobody."""
    history, recipe = found.history, found.history["recipe"]
    typer.echo(
        f"{found.family} on {history['data']['texts']} texts of {data}: epoch {history['best_epoch']} of "
        f"{recipe['epochs']}, {history['cpu_seconds']:.0f} CPU seconds."
    )
    for layer, (moved, kept) in enumerate(zip(history["kl"], history["open"], strict=True)):
        typer.echo(f"Up to layer {layer}: {kept:.0%} of the words stay, KL {moved:.3f}.")
    whole, budget = history["kl_all_hidden"], recipe["epsilon"]
    if not history["within_budget"]:
        typer.echo(f"The budget of {budget:g} was not kept. More epochs may help, or a lower rate.")
    if whole <= 2 * budget:
        typer.echo(f"With every word hidden KL is {whole:.3f}: choose an --epsilon well below.")
    asked = f"--methods diffmask --set diffmask.explainer={out}"
    typer.echo(f"Next: heedful explain {model} TEXT {asked}")
