"""`heedful reproduce`: rerun a published study and compare its numbers with ours."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from heedful.cli import options
from heedful.core.errors import ConfigError, RunError

if TYPE_CHECKING:
    from heedful.studies.claims import ClaimFinding


def reproduce(
    study: Annotated[str, Argument(metavar="STUDY", help="See `heedful list studies`.")],
    data_root: Annotated[
        Path, Option(parser=options.path, help="The folder of data sets, under their usual names.")
    ],
    out: Annotated[
        Path | None,
        Option(
            parser=options.path,
            help="Folder to write or continue. [default: runs/STUDY or runs/STUDY-quick]",
        ),
    ] = None,
    quick: Annotated[bool, Option("--quick", help="A sample of everything.")] = False,
    seeds: Annotated[int | None, Option(min=1, help="Models of each kind.")] = None,
    main_seeds: Annotated[
        int, Option(min=0, help="Models of the study's main kind, if more are wanted.")
    ] = 0,
    sets: Annotated[str | None, Option(help="Data sets, by commas. [default: all found]")] = None,
    encoders: Annotated[
        str | None, Option(help="Encoders, by commas. [default: all of the study]")
    ] = None,
    attentions: Annotated[
        str | None, Option(help="Attentions, by commas. [default: all of the study]")
    ] = None,
    transformers: Annotated[
        str | None, Option(help="minilm, folders or hub ids to fine-tune and audit as well.")
    ] = None,
    train: Annotated[
        str | None, Option(help="Maximum of training texts, by set: snli=10000,imdb=5000.")
    ] = None,
    test: Annotated[str | None, Option(help="Maximum of test texts, by set: imdb=1000.")] = None,
    workers: Annotated[int, Option(min=1, help="Cells that run in parallel.")] = 2,
    page_only: Annotated[
        bool, Option("--page-only", help="Run nothing; write the page of the results so far.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Rerun a published study on every data set found, and write its page."""
    from heedful.report.escaping import escape_control_characters
    from heedful.studies.page import pluralise
    from heedful.studies.reproduce import reproduce as rerun_study

    def announce(line: str) -> None:
        if not quiet:
            typer.echo(escape_control_characters(line), err=True)

    with options.progress_bar("cells", quiet=quiet) as progress:
        found = rerun_study(
            study,
            data_root=data_root,
            out=out or Path("runs", f"{study}-quick" if quick else study),
            quick=quick,
            seeds=seeds,
            main_seeds=main_seeds,
            sets=options.split_names(sets),
            encoders=options.split_names(encoders),
            attentions=options.split_names(attentions),
            transformers=options.split_names(transformers),
            train=_parse_limits("--train", train),
            test=_parse_limits("--test", test),
            workers=workers,
            page_only=page_only,
            progress=progress,
            announce=announce,
        )
    if not quiet:
        for line in _claim_lines(found.claims):
            typer.echo(escape_control_characters(line))
        typer.echo(f"Page: {found.page}")
    if found.failed:
        some = [f"{name}: {why.rstrip('.')}" for name, why in list(found.failed.items())[:3]]
        many = pluralise(len(found.failed), "cells")
        raise RunError(f"{many} failed. {'; '.join(some)}. Run the same command to try again.")


def _claim_lines(claims: "Sequence[ClaimFinding]") -> Iterator[str]:
    """Every claim once, followed by its result on each data set."""
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
    """Parse `snli=10000` to {"snli": 10000}."""
    found = {}
    for pair in options.split_names(text):
        name, _, value = pair.partition("=")
        if not value.isdecimal() or int(value) < 1:
            raise ConfigError(f"{option} got {pair!r}; each part must be SET=NUMBER.")
        found[name.strip()] = int(value)
    return found
