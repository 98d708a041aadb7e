"""The verdict in words: the same facts, in the same order, on every card and page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from shlex import quote
from typing import Any

from heedful.core.records import Answer, Degree, Estimate, Flips, ModelScore, TextCounts, Verdict
from heedful.report.check_specs import find_spec
from heedful.report.sections.claims import CLAIM_LABELS
from heedful.results.audited_attention import read_audited_attention
from heedful.results.document import Cell, Table
from heedful.results.run_records import sanitise_text

HEADLINES: Mapping[Answer, str] = {
    "faithful": "Attention explains this model, as a ranking of words by removal.",
    "unfaithful": "Attention does not explain this model.",
    "undecided": "It is undecided whether attention explains this model.",
}
ANSWERED_BY = ("ranks", "used")
REFUTED = {
    "ranks": "It does not rank words by their influence on the output.",
    "used": "The output hardly depends on it.",
}
HOLDS = "It ranks words by their influence, and the output depends on it."
SCOPE = "About which words matter when removed, not which side they take"
SCALE = "Place of attention: 0 is chance, 1 influence itself"
PLACE_LABELS = {
    "order": "order of all words",
    "top_set": "top words together",
    "top_word": "top word",
}
OLDER_SCALE = "Degree of attention, from shuffled attention (0) to the gradient (1)"
NO_BETTER = "No method that was tried ranks words certainly better."
MOST_CLASSES = 6  # in a sentence


@dataclass(frozen=True, slots=True)
class NamedEstimate:
    """An estimate and what it is called."""

    name: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class VerdictCard:
    """The verdict at the head of a page. Texts in it come from users: the renderer escapes them."""

    model: str
    answer: Answer
    chance: str  # that the model is at chance; empty where it is not; it comes before all else
    headline: str  # the answer in one sentence
    places: tuple[NamedEstimate, ...]  # between chance (0) and a ranking by influence (1)
    reliability: Estimate | None  # of the influence of words, which the places rest on
    degree: Estimate | None  # of older runs, which have no places
    flips: str  # in which share of texts the prediction changes without a fifth of the words
    why: str
    attention: str  # the one under audit, where the model has several
    claims: tuple[tuple[str, str, str], ...]  # name, answer and meaning
    scope: str  # what the answer is about, and the published tests beside it
    instead: str  # the method that ranks words certainly better, or that there is none
    command: str  # how to use that method
    score: str  # accuracy, majority baseline and number of texts by class
    texts: str  # how many were audited, how many are distinct, how many were seen in training
    level: float  # of the intervals

    @property
    def scale(self) -> str:
        """What the places are, with the reliability of what they rest on."""
        if self.reliability is None:
            return f"{SCALE}."
        return f"{SCALE} (reliability {self.reliability.value:.3f})."


def build_verdict_card(verdict: Verdict, manifest: Mapping[str, Any]) -> VerdictCard:
    """The verdict of a run in words."""
    audited = read_audited_attention(manifest)
    reliability = verdict.places.get("reliability")
    return VerdictCard(
        model=sanitise_text(str(manifest["model"]["name"])),
        answer=verdict.answer,
        chance=describe_chance(verdict.score),
        headline=HEADLINES[verdict.answer],
        places=tuple(
            NamedEstimate(label, verdict.places[name])
            for name, label in PLACE_LABELS.items()
            if name in verdict.places and not isnan(verdict.places[name].value)
        ),
        reliability=reliability if reliability and reliability.n else None,
        degree=_older_degree(verdict.degree),
        flips=describe_flips(verdict.flips),
        why=sanitise_text(describe_reason(verdict)),
        attention=audited.sentence if audited else "",
        claims=tuple(
            (sanitise_text(name), one.answer, CLAIM_LABELS.get(name, sanitise_text(name)))
            for name, one in verdict.claims.items()
        ),
        scope=describe_scope(verdict, manifest),
        instead=sanitise_text(describe_instead(verdict)),
        command=sanitise_text(command_for(verdict, manifest)),
        score=sanitise_text(describe_score(verdict.score)),
        texts=describe_texts(verdict, manifest),
        level=manifest.get("level", 0.95),
    )


def _older_degree(degree: Degree | None) -> Estimate | None:
    """The degree where it is not one of the places."""
    if degree is None or degree.of == "order" or isnan(degree.estimate.value):
        return None
    return degree.estimate if degree.estimate.n else None


def describe_chance(score: ModelScore | None) -> str:
    """That the model is at chance; empty where it is not, or where no text has a label."""
    if score is None or not score.at_chance:
        return ""
    return (
        f"The model is at chance: its accuracy, {score.accuracy}, is not certainly above the "
        f"{score.majority:.3f} of always naming the most frequent class."
    )


def describe_flips(flips: Flips | None) -> str:
    """The share of the texts whose prediction changes without a fifth of the words."""
    if flips is None or not flips.attention.n:
        return ""
    best = flips.best_method
    others = [
        f"best method {_percent(best.estimate)} ({sanitise_text(best.method)})" if best else "",
        f"best set found {_percent(flips.best_set)}" if flips.best_set.n else "",
        f"as many at random {_percent(flips.random)} (paired difference "
        f"{_percent(flips.difference, interval=True)})",
    ]
    return (
        "Without the 20 % of the words that attention names, the prediction changes in "
        f"{_percent(flips.attention)} of the texts; {', '.join(filter(None, others))}."
    )


def _percent(estimate: Estimate, *, interval: bool = False) -> str:
    """A share in percent, with its interval where that is asked for.

    >>> share = Estimate(0.224, 0.19, 0.26, 9)
    >>> _percent(share), _percent(share, interval=True)
    ('22 %', '22 % [19, 26]')
    """
    text = f"{100 * estimate.value:z.0f} %"
    if interval and estimate.n > 1 and not isnan(estimate.low):
        text += f" [{100 * estimate.low:z.0f}, {100 * estimate.high:z.0f}]"
    return text.replace("-", "\N{MINUS SIGN}")


def describe_reason(verdict: Verdict) -> str:
    """Why the answer is what it is; each reason once."""
    claims = [(name, verdict.claims[name]) for name in ANSWERED_BY if name in verdict.claims]
    if not verdict.places or not claims:
        return verdict.why
    if verdict.answer == "faithful":
        return HOLDS
    if verdict.answer == "unfaithful":
        return " ".join(REFUTED[name] for name, one in claims if one.answer == "refuted")
    return " ".join(dict.fromkeys(one.why for _, one in claims if one.answer != "supported"))


def describe_scope(verdict: Verdict, manifest: Mapping[str, Any]) -> str:
    """What the answer is about; the claim *exclusive* and the published statistics beside it."""
    beside = []
    if (exclusive := verdict.claims.get("exclusive")) is not None:
        beside.append(f"exclusive {exclusive.answer}")
    if taus := list(_published(verdict, manifest)):
        beside.append(f"published τ {', '.join(taus)}")
    return f"{'; '.join((SCOPE, *beside))}." if verdict.places else ""


def _published(verdict: Verdict, manifest: Mapping[str, Any]) -> Iterator[str]:
    for check, result in verdict.checks.items():
        for measure, words in find_spec(check, manifest).published.items():
            if (found := result.of(measure)).n and not isnan(found.value):
                value = f"{found.value:z.3f}".replace("-", "\N{MINUS SIGN}")
                yield f"{value} {words}"


def describe_instead(verdict: Verdict) -> str:
    """The method that ranks words certainly better than attention, or that there is none."""
    if verdict.instead is not None:
        return str(verdict.instead)
    tried = [result.by_method("order") for result in verdict.checks.values()]
    return NO_BETTER if verdict.places and any(set(one) - {"attention"} for one in tried) else ""


def command_for(verdict: Verdict, manifest: Mapping[str, Any]) -> str:
    """How to explain a text by the better method; empty where there is none."""
    if verdict.instead is None:
        return ""
    model = quote(str(manifest["model"]["name"]))
    return f'heedful explain {model} "…" --methods {quote(verdict.instead.method)}'


def describe_score(score: ModelScore | None) -> str:
    """Accuracy, the accuracy of always naming the most frequent class, and texts by class."""
    if score is None:
        return ""
    named = sorted(score.n_by_class.items())
    counts = [f"{n} {name}" for name, n in named[:MOST_CLASSES]]
    if len(named) > MOST_CLASSES:
        counts.append(f"and {len(named) - MOST_CLASSES} more classes")
    return (
        f"Accuracy {score.accuracy}, most frequent class {score.majority:.3f}, "
        f"n = {', '.join(counts)}."
    )


def describe_texts(verdict: Verdict, manifest: Mapping[str, Any]) -> str:
    """How many texts were audited, of what, how many are distinct and were used in training."""
    data, counts = manifest["data"], verdict.texts
    number = data["texts"] - manifest.get("too_short", 0) if counts is None else counts.audited
    origin = sanitise_text(f"{number} texts of {data['name']} ({data['split']})")
    lost = tuple(_left_out(manifest))
    if counts is None:
        return f"{', '.join((origin, *lost))}."
    if counts.not_judged:
        lost += (f"{counts.not_judged} of too few words to judge their ranking",)
    same = counts.distinct == counts.audited
    distinct = "all distinct" if same else f"{counts.distinct} of them distinct"
    return " ".join(filter(None, (f"{', '.join((origin, distinct, *lost))}.", _seen(counts))))


def _left_out(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Texts that were left out or cut, and bad rows, where there are any."""
    if short := manifest.get("too_short"):
        yield f"{short} too short"
    if cut := manifest.get("truncated"):
        yield f"{cut} cut"
    rows = str(manifest["data"].get("bad_rows") or "")
    if rows and not rows.startswith("no "):
        yield sanitise_text(rows)


def _seen(counts: TextCounts) -> str:
    """How many of the texts the model was trained on, where that is known."""
    seen = counts.seen_in_training
    if seen is None:
        return ""
    if not seen:
        return "None of them was used in training."
    verb = "was" if seen == 1 else "were"
    return f"{seen} of these {counts.audited} texts {verb} used in training."


def places_table(card: VerdictCard) -> Table:
    """The places with their intervals and numbers of texts."""
    rows = ((one.name, Cell(estimate=one.estimate), str(one.estimate.n)) for one in card.places)
    return Table(("place", "estimate", "n"), tuple(rows))
