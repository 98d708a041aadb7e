"""`heedful reproduce`: a published study run again, its numbers beside ours."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Quiet, names, progress_bar
from heedful.core.errors import ConfigError, RunError

if TYPE_CHECKING:
    from heedful.studies.results.claims import Judged

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
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Make nothing: the page of what is there.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run a published study again on every data set found, and write its page."""
    from heedful.report.escaping import printable
    from heedful.studies.page.page_parts import several
    from heedful.studies.reproduce import reproduce as run_again

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
            page_only=page_only,
            progress=progress,
            announce=say,
        )
    if not quiet:
        for line in _told(found.claims):
            typer.echo(printable(line))
        typer.echo(f"Page: {found.page}")
    if found.failed:
        some = [f"{name}: {why.rstrip('.')}" for name, why in list(found.failed.items())[:3]]
        many = several(len(found.failed), "cells")
        raise RunError(f"{many} failed. {'; '.join(some)}. The same command tries again.")


def _told(claims: "Sequence[Judged]") -> Iterator[str]:
    """Every claim once, and below it what came out on each set."""
    width = max((len(one.asked_of()) for one in claims), default=0)
    before = None
    for one in claims:
        if one.claim != before:
            yield f"{one.claim.says}:"
            before = one.claim
        told = one.why if one.found is None else str(one.found)
        theirs = "" if one.published is None else f", published {one.published:z.3f}"
        yield f"  {one.asked_of():{width}}  {one.answer:13} {told}{theirs}".rstrip()


def _limits(option: str, text: str | None) -> dict[str, int]:
    """`snli=10000` as {"snli": 10000}."""
    found = {}
    for pair in names(text):
        name, _, value = pair.partition("=")
        if not value.isdecimal() or int(value) < 1:
            raise ConfigError(f"{option} got {pair!r}; each part must be SET=NUMBER.")
        found[name.strip()] = int(value)
    return found
