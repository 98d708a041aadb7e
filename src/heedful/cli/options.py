"""What the commands share: options and progress bars."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from heedful.core.errors import ConfigError
from heedful.core.timing import Progress, no_progress

if TYPE_CHECKING:
    from heedful.data.dataset import Dataset

ModelArgument = Annotated[
    str, Argument(metavar="MODEL", help="A heedful or transformers folder, or a hub id.")
]
DataArgument = Annotated[str, Argument(help="A file, a folder, hf:NAME, sst:PATH, …")]
JsonOption = Annotated[bool, Option("--json", help="Print JSON.")]
HtmlOption = Annotated[Path | None, Option(help="Write a page that opens offline.")]
MinWordsOption = Annotated[int | None, Option(min=1, help="Leave out shorter texts.")]
BatchOption = Annotated[int | None, Option(min=1, help="Batch size. [default: 32]")]
QuietOption = Annotated[bool, Option("--quiet", help="Print no progress and no card.")]
DetailsOption = Annotated[
    bool, Option("--details", help="Print the estimates of every check below the verdict.")
]
SeedOption = Annotated[int, Option(help="Seed of all random numbers.")]
FieldsOption = Annotated[str | None, Option(help="Columns, as text=review,label=stars.")]
CleaningOption = Annotated[
    str | None,
    Option("--cleaning", help="Clean texts as a paper did; see list cleanings."),
]
LimitOption = Annotated[int | None, Option(min=1, help="Use the first N texts only.")]


SubjectOption = Annotated[
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
    for pair in (text or "").split(",") if text else ():
        name, equals, value = pair.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ConfigError(f"--subject got {pair!r}; each part must be NAME=VALUE.")
        found[name.strip()] = _parse_option(name.strip(), value)
    return found


def _parse_option(name: str, text: str) -> Any:
    if name == "answers":
        return [one.rstrip() for one in text.split("|")]
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdecimal() else text


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
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield no_progress
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(words, total=None, rate="")

        def report(done: int, total: int, what: str) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:.1f}/s" if speed else ""
            bar.update(task, completed=done, total=total, description=what, rate=rate)

        yield report
