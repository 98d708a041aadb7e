"""Score methods of explanation on planted models of which is known which words matter.

Nothing but the tiers of `KnownText` counts: no score of a method is compared with another method,
with deletion, or with the output of the model.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from heedful.core.errors import ConfigError, UnknownName
from heedful.core.timing import Progress, no_progress
from heedful.methods import Method
from heedful.methods.base import default_methods
from heedful.planted.influence.kind import (
    InfluenceCase,
    InfluenceTruth,
    KnownText,
    influence_cases,
    influence_kinds,
)
from heedful.planted.scoring.result import BenchmarkResult, MethodScore, ScoredText
from heedful.planted.scoring.text_score import score_text
from heedful.planted.scoring.word_scorers import WordScorer, build_scorers, run_scorer, time_pass

BENCHMARK_TEXTS = 20  # texts of each kind by default


def score_methods(
    methods: Sequence[str] | None = None,
    *,
    others: Mapping[str, WordScorer | Method] | None = None,
    kinds: Sequence[str] | None = None,
    texts: int = BENCHMARK_TEXTS,
    seed: int = 0,
    progress: Progress = no_progress,
) -> BenchmarkResult:
    """Score methods on one planted model of each kind: are their top words those that matter?

    Kinds count alike, and intervals are over kinds, since models of one kind are alike. A method
    that does not apply to a text is not scored on it; this is counted with the reason.

    Args:
        methods: Names of registered methods; without names, those that `heedful explain` runs
            unasked. Give () for `others` alone.
        others: Further methods by a name for the table: functions from a subject and an `Example`
            to one score per word, or `Method` objects.
        kinds: Names of kinds or of families; all kinds by default.
        texts: The number of texts of each kind.
        seed: The key of the subjects, their lengths and texts, and of methods that draw.
        progress: Called before each method on each kind.
    """
    if texts < 1:
        raise ConfigError(f"texts must be at least 1, not {texts}.")
    names = default_methods() if methods is None else tuple(methods)
    scorers = build_scorers(names, others or {}, seed=seed)
    if not scorers:
        raise ConfigError("No method was given; name one, or give others.")
    chosen = find_kinds(kinds)
    cases = influence_cases(seed, len(chosen), chosen)
    found = _score_cases(cases, scorers, texts, progress)
    scores = {name: MethodScore(name, own) for name, own in found.items()}
    return BenchmarkResult(seed, texts, cases, scores)


def _score_cases(
    cases: Sequence[InfluenceCase],
    scorers: Mapping[str, WordScorer],
    texts: int,
    progress: Progress,
) -> dict[str, dict[str, list[ScoredText]]]:
    """The scored texts of each kind, by method; the texts of a case are drawn once."""
    found: dict[str, dict[str, list[ScoredText]]] = {name: {} for name in scorers}
    total = len(cases) * len(scorers)
    for number, case in enumerate(cases):
        known = list(enumerate(case.known(texts)))
        for done, (name, scorer) in enumerate(scorers.items(), start=number * len(scorers)):
            progress(done, total, f"{case.kind}: {name}")
            own = [_score_text_of(case, *one, name=name, scorer=scorer) for one in known]
            found[name][case.kind] = own
    progress(total, total, "done")
    return found


def _score_text_of(
    case: InfluenceCase, index: int, known: KnownText, *, name: str, scorer: WordScorer
) -> ScoredText:
    example = known.example(index)
    one_pass = time_pass(case.subject, example)
    given = run_scorer(name, scorer, case.subject, example)
    return ScoredText(
        None if given.scores is None else score_text(given.scores, known),
        given.reason,
        attention_is_right(case.truth, known),
        given.cpu_seconds,
        one_pass,
    )


def attention_is_right(truth: InfluenceTruth, known: KnownText) -> bool | None:
    """Whether attention is planted to rank the words of a text rightly; None: not known."""
    mixture = truth.mixture
    if mixture is None or mixture.claim != "ranks":
        return truth.ranks
    return {mixture.holds: True, mixture.fails: False}.get(known.part)


def find_kinds(names: Sequence[str] | None) -> list[str]:
    """Kinds by their names or those of their families; all without names."""
    known = influence_kinds()
    families = sorted({one.family for one in known.values()})
    chosen = list(known) if names is None else names
    for name in chosen:
        if name not in known and name not in families:
            near = get_close_matches(name, [*known, *families], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownName(
                f"No planted kind or family is named {name!r}.{hint} Families: "
                f"{', '.join(families)}. Kinds: {', '.join(known)}."
            )
    if not chosen:
        raise ConfigError("No kinds were given; leave kinds out to use all of them.")
    return [one.name for one in known.values() if {one.name, one.family} & set(chosen)]
