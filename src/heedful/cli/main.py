"""The `heedful` command. Exit codes: 0 done, 1 not met, 2 wrong request, 130 interrupted."""

import os
import sys

import typer
from typer.exceptions import TyperException

from heedful.cli import (
    audit,
    benchmark,
    check,
    compare,
    demo,
    explain,
    list_parts,
    report,
    reproduce,
    train,
    train_diffmask,
    verify,
)
from heedful.core.errors import HeedfulError

INTERRUPTED = 130
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # set by users who choose themselves
RESUMABLE = {"audit", "demo", "diffmask", "reproduce", "train"}  # interrupted, they continue
app = typer.Typer(
    name="heedful",
    help="Does attention explain this model's predictions, and if not, what does?",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("diffmask")(train_diffmask.diffmask)
app.command("audit")(audit.audit)
app.command("explain")(explain.explain)
app.command("check")(check.check)
app.command("list")(list_parts.list_parts)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("verify")(verify.verify)
app.command("benchmark")(benchmark.benchmark)
app.command("reproduce")(reproduce.reproduce)


def main() -> None:
    """Run the command line; errors are one line on stderr."""
    _compute_on_one_thread()
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except HeedfulError as error:
        code = _print_error(str(error), 2)
    except TyperException as error:
        code = _print_error(error.format_message(), 2)
    except BrokenPipeError:  # the reader of the output closed it, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    if code == INTERRUPTED:  # typer turns Ctrl-C into this
        resumes = "starts again" if RESUMABLE.isdisjoint(sys.argv[1:2]) else "continues"
        _print_error(f"interrupted; the same command {resumes}.", code)
    sys.exit(code if isinstance(code, int) else 0)


def _compute_on_one_thread() -> None:
    """Have torch compute on one thread, unless the environment says how many.

    Sums in another order differ in their last bits, and small models gain nothing by threads. torch
    itself is not imported for it: many commands do without.
    """
    if any(os.environ.get(name) for name in THREADS):
        return
    os.environ[THREADS[0]] = "1"  # which torch reads when it is imported
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _print_error(message: str, code: int) -> int:
    print(f"heedful: {' '.join(message.split())}", file=sys.stderr)  # noqa: T201
    return code
