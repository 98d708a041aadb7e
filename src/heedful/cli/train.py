"""`heedful train`: fit an attention classifier to data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.common import Fields, Limit, Quiet, Seed, progress_bar

if TYPE_CHECKING:
    from heedful.models.recurrent import RecurrentSubject
    from heedful.training.fit import Recipe


def train(
    data: Annotated[str, typer.Argument(help="A file, a folder, hf:NAME, sample:NAME, …")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    encoder: Annotated[str, typer.Option(help="bilstm, cnn, average or mlp.")] = "bilstm",
    attention: Annotated[str, typer.Option(help="additive, dot or uniform.")] = "additive",
    embeddings: Annotated[
        str | None, typer.Option(help="A GloVe or word2vec text file, or: glove.")
    ] = None,
    fields: Fields = None,
    epochs: Annotated[int, typer.Option(min=1)] = 8,
    seed: Seed = 0,
    limit: Limit = None,
    min_df: Annotated[int, typer.Option(min=1, help="Texts a word must occur in.")] = 1,
    min_words: Annotated[int, typer.Option(min=1, help="Leave shorter texts out.")] = 1,
    max_words: Annotated[int, typer.Option(min=1, help="Cut longer texts.")] = 1000,
    punctuation: Annotated[str, typer.Option(help="split it off, or drop it.")] = "split",
    digits: Annotated[str, typer.Option(help="keep them, or qqq.")] = "keep",
    quiet: Quiet = False,
) -> None:
    """Train an attention classifier on DATA and write it to a model folder."""
    from heedful.models.words import WordTokenizer
    from heedful.training.fit import Recipe

    tokenizer = WordTokenizer(punctuation=punctuation, digits=digits)  # type: ignore[arg-type]
    recipe = Recipe(
        encoder=encoder,
        attention=attention,
        embeddings=embeddings,
        epochs=epochs,
        seed=seed,
        min_df=min_df,
        min_words=min_words,
        max_words=max_words,
        tokenizer=tokenizer,
    )
    train_to(data, out, recipe, fields=fields, limit=limit, quiet=quiet)


def train_to(
    data: str,
    out: Path,
    recipe: "Recipe",
    *,
    fields: str | None = None,
    limit: int | None = None,
    quiet: bool = False,
) -> "RecurrentSubject":
    """Train on the train split, choose on dev, save, and say in two lines what came out."""
    from heedful.data.resolve import read, splits
    from heedful.models.store import save
    from heedful.training.fit import fit

    known = read(data, split="train", fields=fields, limit=limit)
    dev = None
    if "dev" in splits(data):
        dev = read(data, split="dev", fields=fields, labels=known.labels)
    with progress_bar("training", quiet=quiet) as progress:
        subject = fit(known, dev, recipe, progress=progress)
    save(subject, out)
    if not quiet:
        told = subject.history
        best = told["best_epoch"]
        typer.echo(
            f"{subject.family} on {told['data']['texts']} texts of {data}: "
            f"dev score {told['dev_scores'][best - 1]:.3f} in epoch {best} of {recipe.epochs}, "
            f"{told['cpu_seconds']:.0f} CPU seconds."
        )
        if known.bad.total:
            typer.echo(f"Bad rows: {known.bad}")
        typer.echo(f"Model: {out}")
    return subject
