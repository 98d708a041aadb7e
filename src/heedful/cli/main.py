"""The `heedful` command and how it ends: 0 done, 1 not met, 2 wrong request, 130 interrupted."""

import sys

import click
import typer

from heedful.cli import audit, check, demo, explain, listing, train
from heedful.core.errors import HeedfulError

app = typer.Typer(
    name="heedful",
    help="Does attention explain this model's predictions, and if not, what does?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("audit")(audit.audit)
app.command("explain")(explain.explain)
app.command("check")(check.check)
app.command("list")(listing.listing)


def main() -> None:
    """Run the command line; errors of the request are one line on stderr."""
    try:
        code = app(standalone_mode=False)
    except HeedfulError as error:
        code = _refuse(str(error))
    except click.ClickException as error:
        code = _refuse(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        print("heedful: interrupted; the same command again continues.", file=sys.stderr)  # noqa: T201
        code = 130
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(message: str) -> int:
    line = " ".join(message.split())
    print(f"heedful: {line}", file=sys.stderr)  # noqa: T201
    return 2
