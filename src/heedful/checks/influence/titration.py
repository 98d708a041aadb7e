"""How places follow known doses of the truth on real models; measured by `benchmarks.titration`."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from heedful.results.document import Section, Table

DOSES = ("0% noise", "25% noise", "50% noise", "75% noise", "100% noise", "reversed", "decoy")
WORDS = (
    "No truth is known of a real model, but known doses of it can be given: here attention is "
    "replaced by the ranking of an independent estimate of influence, mixed with noise; by its "
    "reverse; and by a decoy that puts the fifth of the words with least influence first. Places "
    "must fall with the dose. Each cell is the order of all words, and the answer on the places."
)


@cache
def read_titrations() -> dict[str, Any]:
    """The curves that ship with the check, by the name of the model."""
    found: dict[str, Any] = json.loads(
        files(__package__).joinpath("titrations.json").read_text("utf-8")
    )
    return found


def titration_table() -> Table:
    """The order of every dose on every model."""
    curves = read_titrations()
    rows = tuple(
        (dose, *(_describe(one["rankings"][dose]) for one in curves.values())) for dose in DOSES
    )
    heads = (f"{name} ({one['texts']} texts)" for name, one in curves.items())
    return Table(("attention replaced by", *heads), rows)


def _describe(found: list[Any]) -> str:
    answer, value, low, high = found
    return f"{value:.2f} [{low:.2f}, {high:.2f}] {answer}".replace("-", "\N{MINUS SIGN}")


def titration_section() -> Section:
    """The table, folded, beside the places of an audit."""
    title = "Tried with known doses on other models"
    return Section("influence-titration", title, words=(WORDS,), tables=(titration_table(),))
