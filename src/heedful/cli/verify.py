"""`heedful verify`: are the files of a run as they were written?"""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from heedful.cli import options


def verify(
    run: Annotated[Path, Argument(parser=options.path, help="A run folder.")],
    quiet: options.Quiet = False,
) -> None:
    """Compare every kept file of RUN with its recorded digest; exit code 1 where one differs."""
    from heedful.results.kept_files import KeptFiles, verify_run

    damaged = verify_run(run)
    for line in damaged:
        typer.echo(line)
    if damaged:
        raise typer.Exit(1)
    if not quiet:
        typer.echo(f"{run}: {len(KeptFiles.read(run).digests)} files are whole and unchanged.")
