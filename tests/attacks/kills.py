"""Commands killed at random moments and given again: `python -m attacks.kills --count 200`.

Each job runs once undisturbed. Then it is begun in a new folder, killed up to three times, run to
its end, and must leave the same rows, verdicts, weights and pages, and no draft.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attacks.__main__ import prepare_environment
from heedful.results.kept_files import verify_run

CLOCKS = ("seconds", "cpu_seconds", "wall_seconds", "finished")
TOLD = ("model", "data", "labels", "seed", "level", "truncated", "too_short")  # of a manifest
NOT_COMPARED = (".lock", "log.txt")
LONGEST = 300.0  # seconds, of a job that takes a few
WORDS = "a film that is so fine and in places very dull not good bad it was the best of all"
PLAN = """instances_per_job = 4
resamples = 200
checks = ["agreement", "permutation", "adversarial"]
[settings.adversarial]
steps = 60
"""


@dataclass(frozen=True)
class Job:
    """A command whose every output lies in the folder it is given."""

    name: str
    words: Callable[[Path], list[object]]
    done_already: str = ""  # what it says where it finds its own output
    share: int = 3  # how often it is chosen


@dataclass(frozen=True)
class Undisturbed:
    """What a job leaves, and how long it takes."""

    content: dict[str, Any]
    seconds: float


def make_jobs(base: Path) -> list[Job]:
    """The jobs, on data, models and runs that are made here."""
    from attacks.model_folders import Bases
    from attacks.sandbox import run_forked

    bases = Bases.make(base)
    _write_data(base)
    (base / "plan.toml").write_text(PLAN)
    rows, plan, trained = base / "data", base / "plan.toml", base / "trained"
    _require(run_forked(lambda: _run(["train", rows, "--out", trained, *_SMALL])), "train")
    audit = ["audit", trained, rows, "--plan", plan, "--quiet", "--out"]
    for name, more in (("run", []), ("other", ["--seed", 1])):
        _require(run_forked(lambda n=name, m=more: _run([*audit, base / n, *m])), "audit")
    methods = "attention,gradient,leave_one_out,lime,kernel_shap"
    explain = ["explain", trained, "--data", rows, "--quiet", "--methods", methods, "--out"]
    tune = ["train", rows, "--encoder", bases.bert, "--epochs", 2, "--quiet", "--out"]
    study = ["reproduce", "jain-wallace-2019", "--data-root", base / "root", "--sets", "sst"]
    study += ["--encoders", "average", "--attentions", "additive", "--quick", "--seeds", 1]
    report = ["report", base / "run", "--quiet"]
    compare = ["compare", base / "run", base / "other", "--quiet"]
    return [
        Job("audit", lambda out: [*audit, out / "run"], share=6),
        Job("explain", lambda out: [*explain, out / "scores.parquet"], "exists already"),
        Job("train", lambda out: ["train", rows, *_SMALL, "--out", out / "model"]),
        Job("finetune", lambda out: [*tune, out / "model"]),
        Job("report", lambda out: [*report, *_pages(out), "--figures", out / "figures"]),
        Job("compare", lambda out: [*compare, *_pages(out), "--csv", out / "rows.csv"]),
        Job("reproduce", lambda out: [*study, "--workers", 1, "--out", out / "study"], share=2),
    ]


_SMALL = ["--encoder", "bilstm", "--epochs", 3, "--quiet"]


def _pages(out: Path) -> list[object]:
    return ["--html", out / "page.html", "--markdown", out / "page.md"]


def _write_data(base: Path) -> None:
    """The same texts for all jobs, and where a study looks for them."""
    draw = random.Random(7)
    for split, count in (("train", 120), ("dev", 20), ("test", 40)):
        rows = [
            {"text": " ".join(draw.choices(WORDS.split(), k=draw.randint(6, 12))), "label": label}
            for label in ("negative", "positive") * (count // 2)
        ]
        for folder in (base / "data", base / "root/sst"):
            folder.mkdir(parents=True, exist_ok=True)
            lines = rows if folder.name == "data" else rows[: count // 4]
            text = "".join(json.dumps(row) + "\n" for row in lines)
            (folder / f"{split}.jsonl").write_text(text)


def _run(words: Sequence[object]) -> None:
    """Call the command in this process, and end it with the command's code."""
    from heedful.cli.main import main

    handle = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.argv = ["heedful", *map(str, words)]
    try:
        main()
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 0)


def _require(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} failed with {code}: {Path('said.txt').read_text()[-500:]}")


@dataclass
class Killer:
    """Runs one job in one folder, and kills it."""

    job: Job
    folder: Path

    def start(self) -> int:
        """Begin the job in a process of its own, in its folder."""
        from attacks.sandbox import fork

        def work() -> None:
            self.folder.mkdir(exist_ok=True)
            os.chdir(self.folder)
            _run(self.job.words(self.folder))

        return fork(work)

    def kill(self, seconds: float) -> bool:
        """Kill the job after some time; whether it was still at work."""
        process, until = self.start(), time.monotonic() + seconds
        while time.monotonic() < until:
            if os.waitpid(process, os.WNOHANG)[0]:
                return False
            time.sleep(0.001)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return True

    def finish(self) -> str:
        """Run the job to its end; gives what went wrong, or ""."""
        process, until = self.start(), time.monotonic() + LONGEST
        while time.monotonic() < until:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                code, said = os.waitstatus_to_exitcode(status), self.said()
                known = self.job.done_already and self.job.done_already in said
                return "" if code == 0 or (code == 2 and known) else f"{code}: {said[-400:]}"
            time.sleep(0.005)
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return f"not done after {LONGEST:.0f} seconds"

    def said(self) -> str:
        path = self.folder / "said.txt"
        return path.read_text() if path.exists() else ""

    def wait_for_orphans(self) -> str:
        """Processes that the killed one had started end by themselves; "" once they have."""
        until = time.monotonic() + 60
        while left := _processes_of(self.folder):
            if time.monotonic() > until:
                return f"what it had started lives on: {left}"
            time.sleep(0.02)
        return ""


def _processes_of(folder: Path) -> list[int]:
    """Other processes on whose command line the folder stands."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (one / "cmdline").read_bytes()
            if str(folder).encode() + b"/" in words and int(one.name) != os.getpid():
                found.append(int(one.name))
    return found


def content(folder: Path) -> dict[str, Any]:
    """Every file below a folder, without what a clock says or a path that differs."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name in NOT_COMPARED or path.name == "said.txt":
            continue
        raw = path.read_bytes().replace(str(folder).encode(), b"")
        name = str(path.relative_to(folder))
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows = pq.ParquetFile(path).read(use_threads=False).to_pylist()
            found[name] = sorted(map(repr, rows))
        elif path.name == "manifest.json":  # the rest may depend on what a clock says
            found[name] = {one: json.loads(raw)[one] for one in TOLD}
        elif path.name == "files.jsonl":  # digests of files some of which tell the time
            found[name] = sorted({json.loads(one).get("file", "") for one in raw.splitlines()})
            found[f"{name} verified"] = verify_run(path.parent)
        elif path.suffix == ".json":
            found[name] = _timeless(json.loads(raw))
        elif path.name not in ("report.html", "study.html", "study.md"):  # they tell the time
            found[name] = raw
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key not in CLOCKS}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def compare_content(found: dict[str, Any], whole: dict[str, Any]) -> str:
    """The first difference from what an undisturbed job leaves, or ""."""
    if drafts := [name for name in found if name.endswith(".draft")]:
        return f"a draft is left: {drafts[0]}"
    if odd := sorted(found.keys() ^ whole.keys()):
        return f"{odd[0]} is {'missing' if odd[0] in whole else 'too many'}"
    other = [name for name in whole if found[name] != whole[name]]
    return f"{other[0]} differs" if other else ""


def torture(job: Job, whole: Undisturbed, folder: Path, draw: random.Random) -> tuple[int, str]:
    """Kill a job up to three times, then run it to its end; the kills, and what went wrong."""
    killer, kills, wrong = Killer(job, folder), 0, ""
    for _ in range(draw.choice((1, 1, 2, 3))):
        if not killer.kill(draw.uniform(0.0, whole.seconds)):
            break
        kills += 1
        wrong = wrong or killer.wait_for_orphans()
    wrong = wrong or killer.finish() or compare_content(content(folder), whole.content)
    shutil.rmtree(folder)
    return kills, wrong


def undisturbed(job: Job, scratch: Path) -> Undisturbed:
    """Run a job twice: the second time says how long it takes once all is warm, and is the same."""
    runs = []
    for name in ("first", "second"):
        killer = Killer(job, scratch / f"{job.name}-{name}")
        begun = time.monotonic()
        if wrong := killer.finish():
            raise RuntimeError(f"{job.name} fails undisturbed: {wrong}")
        runs.append(Undisturbed(content(killer.folder), time.monotonic() - begun))
    if wrong := compare_content(runs[1].content, runs[0].content):
        raise RuntimeError(f"{job.name} differs undisturbed: {wrong}")
    return runs[1]


def main(words: Sequence[str] | None = None) -> int:
    """Kill until enough were killed; 0 where every job ended as if nothing had happened."""
    parser = argparse.ArgumentParser("kills", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="kills")
    parser.add_argument("--seed", type=int, default=1, help="what all moments are drawn from")
    parser.add_argument("--jobs", default="", help="names by commas; all of them by default")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="heedful-kills-") as name:
        scratch = Path(name)
        prepare_environment(scratch)
        os.chdir(scratch)
        import attacks.campaigns  # noqa: F401 - what is imported once, before jobs are forked

        known = [one for one in make_jobs(scratch / "bases") if _chosen(one, asked.jobs)]
        whole = {one.name: undisturbed(one, scratch) for one in known}
        told = ", ".join(f"{one} {run.seconds:.1f} s" for one, run in whole.items())
        print(f"Undisturbed: {told}", flush=True)
        draw, kills, failed, runs = random.Random(asked.seed), Counter[str](), 0, 0
        while kills.total() < asked.count:
            job = draw.choices(known, [one.share for one in known])[0]
            runs += 1
            own = random.Random(f"{asked.seed}/{runs}")
            many, wrong = torture(job, whole[job.name], scratch / f"{job.name}-{runs}", own)
            kills[job.name] += many
            if wrong:
                failed += 1
                print(f"{job.name}, run {runs} of seed {asked.seed}, {many} kills: {wrong}")
    print(", ".join(f"{number} {one}" for one, number in kills.most_common()))
    print(f"{kills.total()} kills in {runs} runs")
    print(f"{runs - failed} passed, {failed} failed")
    return 1 if failed else 0


def _chosen(job: Job, names: str) -> bool:
    return not names or job.name in names.split(",")


if __name__ == "__main__":
    sys.exit(main())
