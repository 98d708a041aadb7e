"""The answers under other choices, beside the one that was given."""

from dataclasses import dataclass

from heedful.core.records import Verdict
from heedful.results.run_records import sanitise_text


@dataclass(frozen=True, slots=True)
class ChoiceCell:
    """What is said of a claim, and whether that is something else than in the verdict."""

    answer: str
    other: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice made otherwise."""

    words: str
    cells: tuple[ChoiceCell, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """The table: claims across, choices down; the first row is the verdict's own."""

    claims: tuple[str, ...]
    rows: tuple[Choice, ...]
    sentence: str


def build_choices(verdict: Verdict) -> Choices | None:
    """The table of the claims that were examined; None for a run that kept none."""
    claims = tuple(name for name, one in verdict.claims.items() if one.answer != "not tested")
    if not verdict.multiverse or not claims:
        return None
    own = {name: verdict.claims[name].answer for name in claims}
    rows = [
        Choice("as in the verdict", tuple(ChoiceCell(own[name], other=False) for name in claims))
    ]
    for row in verdict.multiverse:
        said = [row.get(name, "not tested") for name in claims]
        cells = (
            ChoiceCell(sanitise_text(one), other=one != own[name])
            for name, one in zip(claims, said, strict=True)
        )
        rows.append(Choice(sanitise_text(row["choice"]), tuple(cells)))
    return Choices(tuple(map(sanitise_text, claims)), tuple(rows), _sentence(verdict))


def _sentence(verdict: Verdict) -> str:
    """How many of the other choices leave the answer on ranks as it is."""
    own = verdict.claims["ranks"].answer
    same = sum(row.get("ranks") == own for row in verdict.multiverse)
    turned = [row["choice"] for row in verdict.multiverse if row.get("ranks") not in (own, None)]
    sentence = (
        f"{same} of {len(verdict.multiverse)} other choices leave the answer on ranks as it is"
    )
    return sanitise_text(
        f"{sentence}; it changes with: {', '.join(turned)}." if turned else f"{sentence}."
    )
