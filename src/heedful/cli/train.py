"""`heedful train`: fit an attention classifier to data, or fine-tune a transformer on it."""

import json
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from heedful.cli import options
from heedful.core.errors import ConfigError

if TYPE_CHECKING:
    from heedful.core.timing import Progress
    from heedful.data.dataset import Dataset
    from heedful.models.protocols import Subject
    from heedful.training.recipe import FineTuning, Recipe

RECURRENT_OPTIONS = (
    *("attention", "embeddings", "patience", "min_df", "min_words", "max_words"),
    *("punctuation", "digits"),
)
TRANSFORMER_OPTIONS = ("max_tokens",)
RECIPE_OPTIONS = (*RECURRENT_OPTIONS, *TRANSFORMER_OPTIONS, "epochs", "batch", "rate", "seed")

EncoderOption = Annotated[
    str, Option(help="bilstm, cnn, average, mlp; minilm, or a transformers folder or hub id.")
]
AttentionOption = Annotated[
    str | None, Option(help="additive, dot or uniform. [default: additive]")
]
EmbeddingsOption = Annotated[str | None, Option(help="A GloVe or word2vec text file, or glove.")]
RateOption = Option(min=0, help="Learning rate. [default: 0.001; 0.00005 for transformers]")
PatienceOption = Option(min=1, help="Stop after so many epochs without a better dev score.")
MaxTokensOption = Option(min=8, help="Truncate longer texts of transformers. [default: 512]")


def train(
    data: options.Data,
    out: Annotated[Path, Option(parser=options.path, help="The model folder to write.")],
    encoder: EncoderOption = "bilstm",
    attention: AttentionOption = None,
    embeddings: EmbeddingsOption = None,
    fields: options.Fields = None,
    cleaning: options.Cleaning = None,
    epochs: Annotated[int | None, Option(min=1, help="[default: 8; 3 for transformers]")] = None,
    patience: Annotated[int | None, PatienceOption] = None,
    batch: options.Batch = None,
    rate: Annotated[float | None, RateOption] = None,
    seed: options.Seed = 0,
    limit: options.Limit = None,
    min_df: Annotated[int | None, Option(min=1, help="Minimum of texts a word occurs in.")] = None,
    min_words: options.MinWords = None,
    max_words: Annotated[
        int | None, Option(min=1, help="Truncate longer texts. [default: 1000]")
    ] = None,
    max_tokens: Annotated[int | None, MaxTokensOption] = None,
    punctuation: Annotated[str | None, Option(help="split or drop. [default: split]")] = None,
    digits: Annotated[str | None, Option(help="keep or qqq. [default: keep]")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Train an attention classifier on DATA, or fine-tune a transformer, and write it to a folder.

    The same command continues an interrupted fine-tuning.
    """
    here = locals()
    chosen = {name: here[name] for name in RECIPE_OPTIONS if here[name] is not None}
    recipe = _recipe(encoder, chosen, cleaning)
    train_and_save(data, out, recipe, fields=fields, cleaning=cleaning, limit=limit, quiet=quiet)


def train_and_save(
    data: str,
    out: Path,
    recipe: "Recipe | FineTuning",
    *,
    fields: str | None = None,
    cleaning: str | None = None,
    limit: int | None = None,
    quiet: bool = False,
) -> "Subject":
    """Train on the train split, select the epoch on dev, save, and print a summary."""
    from heedful.data.read import describe_equal_splits

    known, dev = options.read_train_and_dev(data, fields=fields, cleaning=cleaning, limit=limit)
    with options.progress_bar("training", quiet=quiet) as progress:
        subject, history = _train_model(known, dev, recipe, out, progress)
    if not quiet:
        best = history["best_epoch"]
        typer.echo(
            f"{subject.family} on {history['data']['texts']} texts of {data}: "
            f"dev score {history['dev_scores'][best - 1]:.3f} in epoch {best} of {recipe.epochs}, "
            f"{history['cpu_seconds']:.0f} CPU seconds."
        )
        if same := describe_equal_splits(data):
            typer.echo(same)
        if known.bad.total:
            typer.echo(f"Bad rows: {known.bad}")
        if known.left_out.total:
            typer.echo(f"Training data: {known.left_out}")
        typer.echo(f"Model: {out}")
    return subject


def _train_model(
    known: "Dataset",
    dev: "Dataset | None",
    recipe: "Recipe | FineTuning",
    out: Path,
    progress: "Progress",
) -> tuple["Subject", dict[str, Any]]:
    """Train and save; return the subject and its history."""
    from heedful.core.files.folder_lock import lock_folder
    from heedful.models.recurrent.model_folder import save_model
    from heedful.training.fit import HISTORY_FILE, finetune, fit
    from heedful.training.recipe import Recipe

    if isinstance(recipe, Recipe):
        with lock_folder(out):  # two processes must not write one model
            fitted = fit(known, dev, recipe, progress=progress)
            save_model(fitted, out)
        return fitted, fitted.history
    subject = finetune(known, dev, recipe, out=out, progress=progress)
    return subject, json.loads((out / HISTORY_FILE).read_text(encoding="utf-8"))


def _recipe(encoder: str, given: dict[str, Any], cleaning: str | None) -> "Recipe | FineTuning":
    """The recipe for this encoder, with what was given on the command line.

    A model of words tokenizes other texts as the cleaning of its data does, as far as its tokenizer
    can, and has the paper's minimum document frequency.
    """
    from heedful.data.cleaning.presets import get_cleaning
    from heedful.models.recurrent.encoders import encoders
    from heedful.models.recurrent.vocabulary import WordTokenizer
    from heedful.training.recipe import FineTuning, Recipe

    near = not Path(encoder).exists() and get_close_matches(encoder, encoders, n=1)
    if encoder not in encoders and not near:
        why = f"for {', '.join(encoders)}; {encoder} is a transformer"
        _refuse_options(given, RECURRENT_OPTIONS, why)
        return FineTuning(encoder, **given)
    why = f"for transformers; {encoder} is none (see --max-words)"
    _refuse_options(given, TRANSFORMER_OPTIONS, why)
    if cleaning is not None:
        one = get_cleaning(cleaning)
        punctuation = "drop" if one.split == "letters" else "split"
        own = {"punctuation": punctuation, "digits": "qqq" if one.numbers else "keep"}
        given = {"lower": one.lower, "min_df": one.min_df, **own, **given}
    split = {name: given.pop(name) for name in ("punctuation", "digits", "lower") if name in given}
    return Recipe(encoder=encoder, tokenizer=WordTokenizer(**split), **given)


def _refuse_options(given: dict[str, Any], names: tuple[str, ...], why: str) -> None:
    if wrong := [f"--{name.replace('_', '-')}" for name in names if name in given]:
        raise ConfigError(f"{', '.join(wrong)} is {why}. Leave it out.")
