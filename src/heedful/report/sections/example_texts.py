"""Which sentences a reader gets to see, and what each method says of their words."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray
from scipy.special import rel_entr

from heedful.core.rng import generator
from heedful.report.escaping import shorten_word
from heedful.results.document import Section, Widget
from heedful.results.run_records import RunRecords, sanitise_text

MOST = 240  # half at random, a quarter from either end
MOST_WORDS = 200  # of one text; what is beyond is counted, so that a page of books stays a page
LONGEST_WORD = 60
LONGEST_QUESTION = 1000  # signs
SCORES = {
    "attention": "Attention",
    "adversarial": "Another attention, same output",
    "one_hot_gradient": "Gradient",
    "leave_one_out": "Leave-one-out",
}


@dataclass(frozen=True, slots=True)
class ExampleText:
    """One text with its scores; `why` says how it came into the sample."""

    instance: int
    why: str
    predicted: str
    label: str
    probability: float | None
    tau: float | None
    jsd: float | None
    words: tuple[str, ...]
    more_words: int
    scores: dict[str, tuple[float, ...]]
    question: str | None = None


def build_example_texts(records: RunRecords) -> Section:
    """The texts that were chosen, to search and to sort."""
    shown, names = choose_examples(records), [one.name for one in fields(ExampleText)]
    # asdict would copy every score
    texts = [{name: getattr(one, name) for name in names} for one in shown]
    total = int((~np.isnan(records.lengths)).sum())
    words = (_describe_sample(len(shown), total, kept=records.texts is not None),)
    widget = Widget("texts", {"scores": SCORES, "sentences": texts}) if texts else None
    return Section("sentences", "Sentences", words, widget=widget, short="Sentences")


def _describe_sample(shown: int, total: int, *, kept: bool) -> str:
    if not kept:
        return (
            "This run kept no words, so there are no sentences to show. "
            "Audit again with the present version to keep them."
        )
    if shown == total:
        return f"All {total} texts."
    quarter = MOST // 4
    return (
        f"{shown} of {total} texts: the {quarter} on which attention and leave-one-out agree "
        f"least, the {quarter} on which they agree most, and {shown - 2 * quarter} drawn at random "
        "from the rest, by the seed of the run."
    )


def choose_examples(records: RunRecords) -> tuple[ExampleText, ...]:
    """At most MOST texts: random ones, those where τ with leave-one-out is lowest, and highest."""
    kept = ~np.isnan(records.lengths)
    instances = records.instances[kept]
    tau = records.column("agreement", "tau_leave_one_out")[kept]
    contents, seed = records.contents[kept], records.manifest.get("seed", 0)
    rows = _chosen(instances, contents, tau, seed=seed)
    chosen = {int(instances[row]): (why, _number(float(tau[row]))) for row, why in rows.items()}
    return tuple(_sentence(row, *chosen[row["instance"]]) for row in records.words_of(chosen))


def _chosen(
    instances: Int64[np.ndarray, "n"],
    contents: NDArray[Any],
    tau: Float64[np.ndarray, "n"],
    *,
    seed: int,
) -> dict[int, str]:
    """Rows to show and why, in the order of the data; the same texts are drawn in any order."""
    if len(instances) <= MOST:
        return dict.fromkeys(np.argsort(instances, kind="stable").tolist(), "all")
    defined = np.flatnonzero(~np.isnan(tau))
    ranked = defined[np.lexsort((instances[defined], tau[defined]))].tolist()
    quarter = MOST // 4
    why = dict.fromkeys(ranked[:quarter], "damning")
    why |= {row: "innocent" for row in ranked[-quarter:] if row not in why}
    rest = [row for row in _mixed(instances, contents, seed=seed) if row not in why]
    why |= dict.fromkeys(rest[: MOST - len(why)], "random")
    return dict(sorted(why.items(), key=lambda one: int(instances[one[0]])))


def _mixed(instances: Int64[np.ndarray, "n"], contents: NDArray[Any], *, seed: int) -> list[int]:
    """All rows in a random order by what they say; copies of a text come last."""
    known = contents.tolist()
    drawn = [generator(seed, "report sentences", one).random() for one in known]
    again = np.ones(len(known))
    again[np.unique(contents, return_index=True)[1]] = 0
    order: list[int] = np.lexsort((instances, np.array(drawn), again)).tolist()
    return order


def _sentence(row: dict[str, Any], why: str, tau: float | None) -> ExampleText:
    words = row["words"][:MOST_WORDS]
    scores = {name: row[name] for name in SCORES if row.get(name) is not None}
    scores = {name: one for name, one in scores.items() if len(one) == len(row["words"])}
    asked = row.get("question")
    return ExampleText(
        instance=row["instance"],
        why=why,
        predicted=sanitise_text(row["predicted"] or ""),
        label=sanitise_text(row["label"] or ""),
        probability=_number(row.get("probability")),
        tau=tau,
        jsd=_jsd(scores.get("attention"), scores.get("adversarial")),
        words=tuple(shorten_word(sanitise_text(word), LONGEST_WORD) for word in words),
        more_words=len(row["words"]) - len(words),
        scores={name: _relative(one)[:MOST_WORDS] for name, one in scores.items()},
        question=None if asked is None else sanitise_text(asked[:LONGEST_QUESTION]),
    )


def _relative(scores: list[float | None]) -> tuple[float, ...]:
    """Scores as shares of the strongest of the text, so that every method uses the whole colour."""
    values = np.nan_to_num(np.array(scores, dtype=np.float64), posinf=0.0, neginf=0.0)
    strongest = np.abs(values).max(initial=0.0) or 1.0
    return tuple(round(float(one), 3) + 0.0 for one in values / strongest)


def _jsd(one: list[float] | None, other: list[float] | None) -> float | None:
    """Jensen–Shannon divergence in nats of two rows of weights."""
    if one is None or other is None:
        return None
    both = np.array([one, other], dtype=np.float64)
    return _number(0.5 * float(rel_entr(both, both.mean(0)).sum()))


def _number(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), 4)
