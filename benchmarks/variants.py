"""Why a study's τ is another than the published one: its set-up, varied one choice at a time.

    python -m benchmarks.variants --data-root DIR [--sets 20news] [--seeds 3] [--page FILE.md]

Each variant is the main model of Jain & Wallace (2019) on one data set with one choice changed:
word vectors, split, when training ends. The page has all of them beside the published numbers.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from heedful.core.atomic_files import write_atomic
from heedful.core.timing import no_progress
from heedful.data.cleaning.presets import get_cleaning
from heedful.data.cleaning.steps import Cleaning
from heedful.data.read import read
from heedful.models.recurrent.vocabulary import Vocabulary, WordTokenizer
from heedful.models.recurrent.word_vectors import load_word_vectors
from heedful.report.pages.section_render import three_decimals
from heedful.results.document import format_estimate
from heedful.studies.cell_results import CellResults, collect_results
from heedful.studies.estimates import (
    UNIT_RANGE,
    estimate_statistic,
    mean,
    t_interval_over_seeds,
)
from heedful.studies.find_data import find_data
from heedful.studies.grid import StudyCell, StudyRequest, build_cells, run_cells
from heedful.studies.published_numbers import NumberKey, PublishedNumbers
from heedful.studies.study import Study

STUDY = "jain-wallace-2019"
MEASURES = ("tau_gradient", "tau_leave_one_out", "tau_gradient_leave_one_out")
AUDITED = 150  # texts: τ of a text varies by 0.2, so that their mean is good to 0.03


@dataclass(frozen=True, eq=False)  # each is its own, and a key
class Variant:
    """One choice that is other than in the study."""

    texts: str
    what: str
    recipe: Mapping[str, Any] = field(default_factory=dict)
    by_date: bool = False  # split as distributed, not at random
    scale: float = 1.0  # of GloVe's vectors


DRAWN = {"drawn": "uniform", "embeddings": "", "embedding": 300}
VARIANTS = (
    Variant("20news", "as in the study: GloVe, 50 numbers; split at random; 8 epochs"),
    Variant("20news", "split by date, as distributed", by_date=True),
    Variant("20news", "GloVe, 50 numbers, a tenth as large", scale=0.1),
    Variant("20news", "vectors drawn, 300 numbers, within ±0.1", DRAWN),
    Variant("20news", "2 epochs", {"epochs": 2}),
    Variant("20news", "20 epochs", {"epochs": 20}),
    Variant("babi2", "as in the study: vectors drawn with deviation 1; 100 epochs at most"),
    Variant("babi2", "10 epochs at most", {"epochs": 10}),
    Variant("babi2", "20 epochs at most", {"epochs": 20}),
    Variant("babi2", "30 epochs at most", {"epochs": 30}),
    Variant("babi2", "vectors drawn within ±0.1", {"drawn": "uniform"}),
)


def main() -> None:
    """Make all cells, then the page."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--data-root", type=Path, required=True)
    asked.add_argument("--out", type=Path, default=Path("runs/variants"))
    asked.add_argument("--sets", nargs="*", help="some of the sets: 20news, babi2")
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--page", type=Path)
    given = asked.parse_args()
    chosen = [one for one in VARIANTS if not given.sets or one.texts in given.sets]
    many = {one: variant_cells(one, given.data_root, given.out, given.seeds) for one in chosen}
    cells = [cell for some in many.values() for cell in some]
    failed = run_cells(cells, given.out, workers=2, progress=no_progress)
    if failed:
        raise SystemExit(f"Some failed: {failed}")
    page = page_of(many, given.out)
    print(page)
    if given.page:
        write_atomic(given.page, page)


def variant_cells(variant: Variant, root: Path, out: Path, seeds: int) -> list[StudyCell]:
    """The study's cells of its main model on this set, but for the one choice."""
    study = Study.read(STUDY)
    picked, _ = study.select(sets=[variant.texts])
    data = find_data(picked, root).data
    own = {}
    if variant.by_date:
        own = split_by_date(Path(data[variant.texts]), picked[0].cleaning, out / "by-date")
    recipe = dict(variant.recipe)
    if variant.scale != 1.0:
        clean = get_cleaning(picked[0].cleaning)
        recipe["embeddings"] = scaled(Path(data[variant.texts]), clean, variant, out / "glove.txt")
    asked = StudyRequest((study.main,), seeds, limits={"test": {variant.texts: AUDITED}})
    cells = build_cells(study, picked, data, asked)
    # the name of the set tells cells of different variants apart in progress and errors
    return [
        replace(
            cell,
            texts=f"{variant.texts}-{VARIANTS.index(variant)}",
            recipe={**cell.recipe, **recipe},
            checks=("agreement",),
            settings={},
            **own,
        )
        for cell in cells
    ]


def split_by_date(folder: Path, cleaning: str, out: Path) -> dict[str, str]:
    """Cleaned as in the study, split as distributed; every fifth training text is for dev."""
    clean = get_cleaning(cleaning)
    low, high = clean.longer_than or 0, clean.shorter_than or float("inf")
    kept: dict[str, list[dict[str, Any]]] = {}
    for split in ("train", "test"):
        told = [{**row, "tokens": clean.clean_text(row["text"])} for row in _rows(folder, split)]
        kept[split] = [row for row in told if low < len(row["tokens"]) < high]
    kept["dev"] = kept["train"][::5]
    kept["train"] = [row for number, row in enumerate(kept["train"]) if number % 5]
    for split, rows in kept.items():
        _write(out / f"{split}.jsonl", rows)
    return {"data": str(out), "cleaning": ""}


def scaled(folder: Path, clean: Cleaning, variant: Variant, path: Path) -> str:
    """GloVe's vectors of the words that the cleaned texts hold, made smaller."""
    split = WordTokenizer()
    texts = [row["text"] for part in ("train", "test") for row in _rows(folder, part)]
    words = Vocabulary.from_texts(
        [[split.normalise(word) for word in clean.clean_text(one)] for one in texts]
    )
    table, _ = load_word_vectors("glove", words)
    known = ((word, table[number]) for word, number in words.numbers.items())
    lines = [
        " ".join([word, *map(str, (variant.scale * row).tolist())])
        for word, row in known
        if row.any()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "\n".join(lines) + "\n")
    return str(path)


def _rows(folder: Path, split: str) -> list[dict[str, Any]]:
    found = read(str(folder), split=split)
    return [{"text": one.text, "label": found.labels[one.label]} for one in found]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "".join(json.dumps(row) + "\n" for row in rows))


def page_of(many: Mapping[Variant, list[StudyCell]], out: Path) -> str:
    """Every variant, its score and its τ, beside what was published."""
    published, study = PublishedNumbers.of(STUDY), Study.read(STUDY)
    lines = [
        "# Where our τ is not the published one",
        f"Main model (BiLSTM, additive attention), {AUDITED} test texts, one choice changed at a "
        "time. Mean over seeds with Student's 95 % interval; made by "
        "`python -m benchmarks.variants`.",
    ]
    for texts in dict.fromkeys(one.texts for one in many):
        rows = ["| | accuracy | " + " | ".join(MEASURES) + " |", "| --- | --- | --- | --- | --- |"]
        keys = [NumberKey(texts, study.main, f"agreement.{one}", "mean") for one in MEASURES]
        score = NumberKey(texts, study.main, "performance.accuracy", "value")
        known = [three_decimals(published.figures[one].value) for one in (score, *keys)]
        rows.append(f"| published | {' | '.join(known)} |")
        for variant, cells in many.items():
            if variant.texts == texts:
                ((_, made),) = collect_results(cells, out).items()
                rows.append(f"| {variant.what} | {' | '.join(_numbers(made))} |")
        lines += [f"## {texts}", "\n".join(rows)]
    return "\n\n".join(lines) + "\n"


def _numbers(made: CellResults) -> list[str]:
    taus = [estimate_statistic(made.table(f"agreement.{one}"), mean) for one in MEASURES]
    return [
        format_estimate(one)
        for one in (t_interval_over_seeds(made.performance("accuracy"), UNIT_RANGE), *taus)
    ]


if __name__ == "__main__":
    main()
