"""What the commands share: the types of their options, and progress bars."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from heedful.core.errors import ConfigError
from heedful.core.timing import Progress, no_progress

if TYPE_CHECKING:
    from heedful.data.dataset import Dataset


def path(text: str) -> Path:
    """A path; `~` at its front is the user's home, also where no shell has seen it."""
    from heedful.results.outputs import output_path

    return output_path(text)


Model = Annotated[
    str, Argument(metavar="MODEL", help="A heedful or transformers folder, or a hub id.")
]
Data = Annotated[str, Argument(help="A file, a folder, hf:NAME, sst:PATH, …")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Html = Annotated[Path | None, Option(parser=path, help="Write a page that opens offline.")]
MinWords = Annotated[int | None, Option(min=1, help="Leave out shorter texts.")]
Batch = Annotated[int | None, Option(min=1, help="Batch size. [default: 32]")]
Quiet = Annotated[bool, Option("--quiet", help="Print no progress and no card.")]
Details = Annotated[
    bool, Option("--details", help="Print the estimates of every check below the verdict.")
]
Seed = Annotated[int, Option(help="Seed of all random numbers.")]
Fields = Annotated[str | None, Option(help="Columns, as text=review,label=stars.")]
Cleaning = Annotated[
    str | None,
    Option("--cleaning", help="Clean texts as a paper did; see list cleanings."),
]
Limit = Annotated[int | None, Option(min=1, help="Use the first N texts only.")]
Subject = Annotated[
    str | None,
    Option(
        "--subject",
        help="For transformers: layer=-1,head=3,position=last,dtype=float32,answers=yes|no.",
    ),
]


def parse_subject_options(text: str | None) -> dict[str, Any]:
    """Parse `layer=-1,dtype=float32` to {"layer": -1, "dtype": "float32"}; `yes|no` is a list.

    A space in front of an answer is part of it.

    >>> parse_subject_options("layer=-1,answers=yes|no,chat=true")
    {'layer': -1, 'answers': ['yes', 'no'], 'chat': True}
    >>> parse_subject_options("answers= yes| no")
    {'answers': [' yes', ' no']}
    """
    found: dict[str, Any] = {}
    for pair in text.split(",") if text else ():
        name, equals, value = pair.partition("=")
        name, bare = name.strip(), value.strip()
        if not (name and equals and bare):
            raise ConfigError(f"--subject got {pair!r}; each part must be NAME=VALUE.")
        if name == "answers":
            found[name] = [one.rstrip() for one in value.split("|")]
        elif bare in ("true", "false"):
            found[name] = bare == "true"
        else:
            found[name] = int(bare) if bare.lstrip("-").isdecimal() else bare
    return found


def split_names(text: str | None) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def read_train_and_dev(
    data: str, *, cleaning: str | None, limit: int | None, **how: Any
) -> tuple["Dataset", "Dataset | None"]:
    """The training texts, at most `limit`, and the dev texts where the data has some."""
    from heedful.data.dataset import DEV_NAMES
    from heedful.data.read import read, splits

    train = read(data, split="train", limit=limit, cleaning=cleaning, **how)
    if not set(DEV_NAMES) & set(splits(data, cleaning=cleaning)):
        return train, None
    how = {"labels": train.labels} | how if how.get("labelled", True) else how
    return train, read(data, split="dev", cleaning=cleaning, **how)


@contextmanager
def progress_bar(words: str, *, quiet: bool) -> Iterator[Progress]:
    """Show a progress bar with rate and time left on stderr, if that is a terminal."""
    from rich import progress as rich_progress
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield no_progress
        return
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn("{task.fields[rate]}"),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(words, total=None, rate="")

        def report(done: int, total: int, what: str) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:.1f}/s" if speed else ""
            bar.update(task, completed=done, total=total, description=what, rate=rate)

        yield report
