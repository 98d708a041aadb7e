"""The scores of methods in the terminal."""

from collections.abc import Iterator
from math import isfinite

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.core.records import Estimate
from heedful.planted.scoring.result import BenchmarkResult, MethodScore
from heedful.report.escaping import escape_control_characters

WIDTH = 148  # columns where the output is not a terminal; in fewer, cells are folded
HEAD = (
    *("method", "top set", "above chance", "att. right", "att. wrong", "top word", "order"),
    *("CPU ms", "passes", "kinds"),
)
LEGEND = (
    "top set: share of the words that matter among as many top words; above chance: 0 is chance, 1 "
    "is perfect. top word: how often the top word is one of those with the most influence. order: "
    "pairs of words in order, ½ is chance. Intervals (95 %) are over kinds.",
    "Which words matter is known by construction, by sets of words; no method and no deletion is "
    "the yardstick. 'att. right' and 'att. wrong' are top sets where attention is planted to "
    "rank words rightly and wrongly: attention itself must be high in the one, low in the other.",
    "CPU ms and passes (forward passes) are for one text at a time. A method is scored only on "
    "kinds that it serves: compare methods on the same kinds (--kinds).",
)


def print_benchmark(found: BenchmarkResult, *, console: Console | None = None) -> None:
    """Print a line for each method, best top set first, then what they refused."""
    out = console or Console()
    if not out.is_terminal:
        out = Console(file=out.file, width=WIDTH)
    kinds = len(found.cases)
    title = f"{kinds} planted kinds × {found.texts} texts, seed {found.seed}"
    out.print(Text(title, style="bold"))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    wide = out.width >= WIDTH
    for number, name in enumerate(HEAD):
        table.add_column(name, justify="right" if number else "left", no_wrap=wide or not number)
    for one in found.ranking:
        if one.served[0]:
            table.add_row(*map(escape_control_characters, benchmark_row(one, kinds)))
    out.print(table)
    for line in LEGEND:
        out.print(Text(line, style="dim"))
    for line in describe_refusals(found):
        out.print(Text(escape_control_characters(line), style="yellow"))


def benchmark_row(one: MethodScore, kinds: int) -> list[str]:
    """The cells of a method, in the order of `HEAD`; a dash where there is no figure."""
    found = one.all_texts
    return [
        one.name,
        _with_interval(found.top_set),
        _two(found.top_set_above_chance.value),
        _two(one.attention_right.top_set.value),
        _two(one.attention_wrong.top_set.value),
        _with_interval(found.top_word),
        _with_interval(found.order),
        f"{1000 * one.cpu_seconds:.3g}" if isfinite(one.cpu_seconds) else "–",
        f"{one.passes:.3g}" if isfinite(one.passes) else "–",
        f"{one.served[0]}/{kinds}",
    ]


def describe_refusals(found: BenchmarkResult) -> Iterator[str]:
    """A line for each method that refused texts: how many, and the most frequent reason."""
    for one in found.ranking:
        reasons = one.refused
        if not reasons:
            continue
        first, *more = reasons
        texts = f"{sum(reasons.values())} texts, {one.refused_kinds} whole kinds"
        others = f" ({len(more)} more reasons in --json)" if more else ""
        yield f"{one.name} refused {texts}: {first}{others}"


def _with_interval(estimate: Estimate) -> str:
    if not isfinite(estimate.value):
        return "–"
    if not isfinite(estimate.low):
        return f"{estimate.value:.2f} [–]"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _two(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "–"
