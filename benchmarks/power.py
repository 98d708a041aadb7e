"""Measure the power of the checks on *exclusive* over planted models, and write the table.

python -m benchmarks.power [--seed N] [--out src/heedful/pipeline/verdict/power.json]

Rows of other checks and architectures are kept as they are: `python -m benchmarks.power_trained`
measures those that need retraining, `python -m benchmarks.calibration --write-power` `influence`.
"""

import argparse
import json
from collections import defaultdict
from datetime import date
from pathlib import Path

from benchmarks.detection_auc import detection_auc
from benchmarks.known import EVERY, Said, all_examined, alone
from benchmarks.power_row import make_power_row
from heedful.core.atomic_files import write_atomic
from heedful.numerics.stats.detection_skill import KnownTruthAnswers
from heedful.planted import (
    ASKED_KINDS,
    DIFFICULTIES,
    KINDS,
    LENGTHS,
    PLANTED_VERSION,
    cases,
)

TABLE = Path("src/heedful/pipeline/verdict/power.json")
COUNTS = (10, 25, 50)
SEED = 20_261  # no other study draws from it


def main() -> None:
    """Measure and write."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=SEED)
    asked.add_argument("--out", type=Path, default=TABLE)
    asked.add_argument("--workers", type=int, default=2)
    asked.add_argument("--only", nargs="*", help="renew the rows of these checks alone")
    asked.add_argument("--questions", action="store_true", help="of subjects with a question alone")
    given = asked.parse_args()
    plan = alone(given.only) if given.only else EVERY
    kinds = ASKED_KINDS if given.questions else (*KINDS, *ASKED_KINDS)
    drawn = cases(given.seed, len(kinds) * len(DIFFICULTIES) * len(LENGTHS), kinds)
    found: list[Said] = []
    for number, said in enumerate(all_examined(drawn, COUNTS, plan, workers=given.workers)):
        found += said
        print(f"{number + 1}/{len(drawn)} {said[0].case}", flush=True)
    before = json.loads(given.out.read_text("utf-8"))["rows"] if given.out.exists() else []
    renewed = {(*said, one.where.architecture) for one in found for said in one.answers}
    named = ("claim", "check", "architecture")
    kept = [row for row in before if tuple(row[name] for name in named) not in renewed]
    table = {
        "planted": PLANTED_VERSION,
        "seed": given.seed,
        "made": date.today().isoformat(),
        "rows": [*rows(found), *kept],
    }
    write_atomic(
        given.out, json.dumps(table, separators=(",", ":")).replace('{"claim"', '\n{"claim"')
    )


def rows(found: list[Said]) -> list[dict[str, object]]:
    """A row for each claim, check and likeness of subjects."""
    cells: dict[tuple[object, ...], list[Said]] = defaultdict(list)
    for said in found:
        for claim, check in said.answers:
            where = said.where.architecture, said.case.length, said.where.texts
            cells[(claim, check, *where)].append(said)
    return [_row(cell, some) for cell, some in cells.items()]


def _row(cell: tuple[object, ...], some: list[Said]) -> dict[str, object]:
    claim, check, architecture, words, texts = cell
    by_kind: dict[str, list[Said]] = defaultdict(list)
    for one in some:
        if one.case.truth[claim] is not None:
            by_kind[one.case.kind].append(one)
    kinds = {
        kind: KnownTruthAnswers(
            bool(mine[0].case.truth[claim]),
            tuple(one.answers[claim, check] for one in mine),
            tuple(one.scores[claim, check] for one in mine),
        )
        for kind, mine in by_kind.items()
    }
    like = {"architecture": architecture, "words": words, "texts": texts}
    return make_power_row(str(claim), str(check), like, kinds, detection_auc(list(kinds.values())))


if __name__ == "__main__":
    main()
