"""The answers under other choices, beside the one that was given."""

from heedful.core.records import Verdict
from heedful.results.document import Cell, Section, Table
from heedful.results.run_records import sanitise_text


def build_choices(verdict: Verdict) -> Section | None:
    """The answers on claims that were examined, by choice; None for a run that kept none.

    The first row has the verdict's own answers; answers that differ from them are strong.
    """
    own = {name: one.answer for name, one in verdict.claims.items() if one.answer != "not tested"}
    if not verdict.multiverse or not own:
        return None
    rows: list[tuple[str | Cell, ...]] = [
        (Cell("as in the verdict", strong=True), *(Cell(answer=one) for one in own.values()))
    ]
    for row in verdict.multiverse:
        said = {name: row.get(name, "not tested") for name in own}
        cells = (
            Cell(answer=sanitise_text(one), strong=one != own[name]) for name, one in said.items()
        )
        rows.append((sanitise_text(row["choice"]), *cells))
    words = ("Every row changes one choice and leaves the rest.", describe_choices(verdict))
    table = Table(("choice", *map(sanitise_text, own)), tuple(rows))
    return Section("choices", "Does the verdict depend on analysis choices?", words, (table,))


def describe_choices(verdict: Verdict) -> str:
    """How many of the other choices leave the answer on ranks as it is; empty without any."""
    if not verdict.multiverse or "ranks" not in verdict.claims:
        return ""
    own = verdict.claims["ranks"].answer
    same = sum(row.get("ranks") == own for row in verdict.multiverse)
    turned = [row["choice"] for row in verdict.multiverse if row.get("ranks") not in (own, None)]
    changes = f"; it changes with: {', '.join(turned)}" if turned else ""
    number = len(verdict.multiverse)
    sentence = f"{same} of {number} other choices leave the answer on ranks as it is{changes}."
    return sanitise_text(sentence)
