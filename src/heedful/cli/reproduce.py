"""`heedful reproduce`: a published study run again, its numbers beside ours."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.common import Quiet, names, progress_bar
from heedful.core.errors import ConfigError, RunError

Named = Annotated[str, typer.Argument(metavar="STUDY", help="See `heedful list studies`.")]
Root = Annotated[Path, typer.Option(help="The folder that data sets lie in, by their usual names.")]
Out = Annotated[
    Path | None,
    typer.Option(help="The folder to write: runs/STUDY, or runs/STUDY-quick. Again, it goes on."),
]
Train = Annotated[
    str | None, typer.Option(help="Texts to train on at most, by set: snli=10000,imdb=5000.")
]


def reproduce(
    study: Named,
    data_root: Root,
    out: Out = None,
    quick: Annotated[bool, typer.Option("--quick", help="A sample of everything.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Models of each kind.")] = None,
    main_seeds: Annotated[
        int, typer.Option(min=0, help="Models of the study's main kind, where more are wanted.")
    ] = 0,
    sets: Annotated[str | None, typer.Option(help="Data sets, by commas; all found.")] = None,
    encoders: Annotated[str | None, typer.Option(help="By commas; all of the study.")] = None,
    attentions: Annotated[str | None, typer.Option(help="By commas; all of the study.")] = None,
    transformers: Annotated[
        str | None, typer.Option(help="minilm, folders or hub ids: tuned, and asked the same.")
    ] = None,
    train: Train = None,
    test: Annotated[
        str | None, typer.Option(help="Texts to audit on at most, by set: imdb=1000.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Cells made side by side.")] = 2,
    quiet: Quiet = False,
) -> None:
    """Run a published study again on every data set found, and write its page."""
    from heedful.report.safe import printable
    from heedful.reproducing.api import reproduce as run_again

    def say(line: str) -> None:
        if not quiet:
            typer.echo(printable(line), err=True)

    with progress_bar("cells", quiet=quiet) as progress:
        found = run_again(
            study,
            data_root=data_root,
            out=out or Path("runs", f"{study}-quick" if quick else study),
            quick=quick,
            seeds=seeds,
            main_seeds=main_seeds,
            sets=names(sets),
            encoders=names(encoders),
            attentions=names(attentions),
            transformers=names(transformers),
            train=_limits("--train", train),
            test=_limits("--test", test),
            workers=workers,
            progress=progress,
            announce=say,
        )
    if not quiet:
        for one in found.claims:
            told = f" {one.found}" if one.found else ""
            typer.echo(printable(f"{one.answer:13} {one.asked_of():10} {one.claim.says}{told}"))
        typer.echo(f"Page: {found.page}")
    if found.failed:
        told = "; ".join(f"{name}: {why}" for name, why in list(found.failed.items())[:3])
        raise RunError(f"{len(found.failed)} cells failed. {told}. The same command tries again.")


def _limits(option: str, text: str | None) -> dict[str, int]:
    """`snli=10000` as {"snli": 10000}."""
    found = {}
    for pair in names(text):
        name, _, value = pair.partition("=")
        if not value.isdecimal() or int(value) < 1:
            raise ConfigError(f"{option} got {pair!r}; each part must be SET=NUMBER.")
        found[name.strip()] = int(value)
    return found
