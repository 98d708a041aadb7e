"""Draw attacks and judge how each ends: `python -m attacks --data 10000 --models 300`."""

import argparse
import os
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attacks.sandbox import Outcome

SHOWN = 40  # kinds of failures that are printed


def main(words: Sequence[str] | None = None) -> int:
    """Run the campaigns; 0 where every case ended well."""
    asked = parse(words)
    with tempfile.TemporaryDirectory(prefix="heedful-attacks-") as name:
        scratch = Path(name)
        prepare_environment(scratch)
        from attacks.campaigns import campaigns
        from attacks.sandbox import Outcome, run_campaign

        every: list[Outcome] = []
        for campaign, count in campaigns(asked, scratch):
            begun = time.monotonic()
            numbers = [asked.only] if asked.only is not None else range(count)
            found: list[Outcome] = []
            for outcome in run_campaign(campaign, list(numbers), workers=asked.workers):
                found.append(outcome)
                if asked.verbose or asked.only is not None:
                    print(f"{outcome.number:5} {outcome.kind:9} {outcome.what}: {outcome.detail}")
            kinds = Counter(one.kind for one in found)
            told = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
            print(f"{campaign.generator}: {told} in {time.monotonic() - begun:.0f} s", flush=True)
            every += found
        return summarise(every, asked.seed)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("attacks", description=__doc__)
    for name, what in (
        ("data", "files of data"),
        ("plans", "plans"),
        ("models", "model folders"),
        ("runs", "damaged run folders"),
    ):
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help=what)
    parser.add_argument("--seed", type=int, default=1, help="what all cases are drawn from")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this case alone, in full")
    parser.add_argument("--workers", type=int, default=2, help="processes at once")
    parser.add_argument("--seconds", type=float, default=60.0, help="longest time of a case")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    return parser.parse_args(words)


def prepare_environment(scratch: Path) -> None:
    """Nothing is fetched, nothing of the user's is touched, one process computes on one thread."""
    os.environ |= {
        "HOME": str(scratch / "home"),
        "HF_HOME": str(scratch / "home/hf"),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    (scratch / "home").mkdir()


def signature(one: "Outcome") -> str:
    """What failures that look alike have in common: where they were raised, or what was done."""
    said = one.detail if one.kind in ("traceback", "generator") else one.what.split(":")[0]
    return re.sub(r"[0-9]+|/\S+|'.*?'", "", f"{one.kind} {one.generator} {said}")[:150]


def summarise(outcomes: "Sequence[Outcome]", seed: int) -> int:
    """Print the failures, those that look alike once, and the last line."""
    bad = [one for one in outcomes if not one.good]
    alike = defaultdict(list)
    for one in bad:
        alike[signature(one)].append(one)
    for some in sorted(alike.values(), key=lambda some: some[0].kind)[:SHOWN]:
        one = some[0]
        print(f"\n{one.kind}, {len(some)} times: {one.what}\n  {one.detail}")
        print(f"  again: python -m attacks --{one.generator} 1 --seed {seed} --only {one.number}")
    if bad:
        kinds = Counter(f"{one.generator} {one.kind}" for one in bad)
        print(f"\nBad: {', '.join(f'{number} {kind}' for kind, number in kinds.most_common())}")
    slow = max(outcomes, key=lambda one: one.seconds, default=None)
    if slow:
        print(f"Slowest: {slow.seconds:.1f} s, {slow.generator} {slow.number}: {slow.what[:100]}")
    print(f"{len(outcomes) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
