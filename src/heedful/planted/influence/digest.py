"""Digests of hand-built kinds, so that none changes without a new `INFLUENCE_VERSION`.

`python -m heedful.planted.influence.digest` says which kinds differ from `digests.json`, and with
`--write` writes them there. Kinds that are trained have none.

A digest contains what a subject computes, not its exact bytes: machines differ in the last digits
of logarithms. Numbers are rounded to six decimals. Of a transformer they are its weights, of any
other subject its logits and attention on the texts of the digest.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heedful.models.protocols import HasAttentionCalls, Subject
from heedful.planted.influence.kind import (
    INFLUENCE_VERSION,
    InfluenceCase,
    KnownText,
    influence_kinds,
)

DIGESTS = Path(__file__).with_name("digests.json")
DIGEST_TEXTS, DIGEST_SEEDS, DECIMALS = 20, (0, 1), 6


def digest_kind(name: str, seeds: Sequence[int] = DIGEST_SEEDS) -> str:
    """sha256 over subjects, the first 20 texts with what is known of them, and the truth.

    At every length of the kind and for every seed.
    """
    kind = influence_kinds()[name]
    settings = (kind.architecture, kind.truth, kind.lengths, kind.short, INFLUENCE_VERSION)
    digest = sha256(repr((name, *settings)).encode())
    for length in kind.lengths:
        for seed in seeds:
            case = InfluenceCase(name, length, seed)
            texts = case.known(DIGEST_TEXTS)
            digest.update(repr([_plain(one) for one in texts]).encode())
            digest.update(repr(case.subject.labels).encode())
            for numbers in _computed_numbers(case.subject, texts):
                # + 0.0: no negative zeros
                rounded = np.round(numbers.detach().double().numpy(), DECIMALS) + 0.0
                digest.update(repr(rounded.shape).encode() + rounded.tobytes())
    return digest.hexdigest()


def digest_kinds() -> dict[str, str]:
    """The digest of every kind that is not trained, by name."""
    kinds = sorted(influence_kinds().items())
    return {name: digest_kind(name) for name, kind in kinds if not kind.trained}


def read_digests() -> dict[str, str]:
    """The digests as they were written."""
    written: dict[str, str] = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return written


def _plain(known: KnownText) -> tuple[object, ...]:
    return known.text, known.tiers, known.part, known.question


def _computed_numbers(subject: Subject, texts: Sequence[KnownText]) -> Iterator[Tensor]:
    if isinstance(subject, HasAttentionCalls):
        yield from (weight for _, weight in sorted(subject.model.state_dict().items()))
        return
    for index, one in enumerate(texts):
        with torch.no_grad():
            forward = subject.forward(subject.batch([subject.encode(one.example(index))]))
        yield from (forward.logits, forward.attention)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare all digests with those written, or write them; 1 if any differs."""
    parser = argparse.ArgumentParser(prog="python -m heedful.planted.influence.digest")
    parser.add_argument("--write", action="store_true", help="write all digests")
    found = digest_kinds()
    if parser.parse_args(arguments).write:
        DIGESTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        return 0
    written = read_digests()
    differ = sorted(one for one in found | written if found.get(one) != written.get(one))
    for name in differ:
        sys.stdout.write(f"{name} differs from {DIGESTS.name}: raise INFLUENCE_VERSION, --write\n")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
