"""`heedful reproduce`: a published study run again, its numbers beside ours."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import QuietOption, progress_bar, split_names
from heedful.core.errors import ConfigError, RunError

if TYPE_CHECKING:
    from heedful.studies.results.claims import ClaimFinding

StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="See `heedful list studies`.")]
DataRootOption = Annotated[
    Path, typer.Option(help="The folder that data sets lie in, by their usual names.")
]
OutOption = Annotated[
    Path | None,
    typer.Option(help="The folder to write: runs/STUDY, or runs/STUDY-quick. Again, it goes on."),
]
TrainLimitsOption = Annotated[
    str | None, typer.Option(help="Texts to train on at most, by set: snli=10000,imdb=5000.")
]


def reproduce(
    study: StudyArgument,
    data_root: DataRootOption,
    out: OutOption = None,
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
    train: TrainLimitsOption = None,
    test: Annotated[
        str | None, typer.Option(help="Texts to audit on at most, by set: imdb=1000.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Cells made side by side.")] = 2,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Make nothing: the page of what is there.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Run a published study again on every data set found, and write its page."""
    from heedful.report.escaping import escape_control_characters
    from heedful.studies.page.page_parts import pluralise
    from heedful.studies.reproduce import reproduce as run_again

    def say(line: str) -> None:
        if not quiet:
            typer.echo(escape_control_characters(line), err=True)

    with progress_bar("cells", quiet=quiet) as progress:
        found = run_again(
            study,
            data_root=data_root,
            out=out or Path("runs", f"{study}-quick" if quick else study),
            quick=quick,
            seeds=seeds,
            main_seeds=main_seeds,
            sets=split_names(sets),
            encoders=split_names(encoders),
            attentions=split_names(attentions),
            transformers=split_names(transformers),
            train=_parse_limits("--train", train),
            test=_parse_limits("--test", test),
            workers=workers,
            page_only=page_only,
            progress=progress,
            announce=say,
        )
    if not quiet:
        for line in _claim_lines(found.claims):
            typer.echo(escape_control_characters(line))
        typer.echo(f"Page: {found.page}")
    if found.failed:
        some = [f"{name}: {why.rstrip('.')}" for name, why in list(found.failed.items())[:3]]
        many = pluralise(len(found.failed), "cells")
        raise RunError(f"{many} failed. {'; '.join(some)}. The same command tries again.")


def _claim_lines(claims: "Sequence[ClaimFinding]") -> Iterator[str]:
    """Every claim once, and below it what came out on each set."""
    width = max((len(one.dataset_label()) for one in claims), default=0)
    before = None
    for one in claims:
        if one.claim != before:
            yield f"{one.claim.says}:"
            before = one.claim
        outcome = one.why if one.estimate is None else str(one.estimate)
        theirs = "" if one.published is None else f", published {one.published:z.3f}"
        yield f"  {one.dataset_label():{width}}  {one.answer:13} {outcome}{theirs}".rstrip()


def _parse_limits(option: str, text: str | None) -> dict[str, int]:
    """`snli=10000` as {"snli": 10000}."""
    found = {}
    for pair in split_names(text):
        name, _, value = pair.partition("=")
        if not value.isdecimal() or int(value) < 1:
            raise ConfigError(f"{option} got {pair!r}; each part must be SET=NUMBER.")
        found[name.strip()] = int(value)
    return found
