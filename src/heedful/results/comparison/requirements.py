"""What a comparison must show: `degree>=-0.05`, `comprehensiveness_attention>0`, `same-answer`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from math import isnan

from heedful.core.errors import ConfigError
from heedful.core.records import Estimate
from heedful.results.comparison.columns import MeasureKey
from heedful.results.comparison.records import DEGREE_KEY, ComparisonRecord, SidePair

SAME_ANSWER = "same-answer"
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
REQUIREMENT_PATTERN = re.compile(
    rf"(?:(?P<check>\w+)\.)?(?P<measure>\w+)(?:\[(?P<setting>[^\[\]]+)\])?"
    rf"\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>{NUMBER})"
)
# a difference is above a bound where its whole interval is
BOUND_TESTS: dict[str, Callable[[Estimate, float], bool]] = {
    ">=": lambda one, bound: one.low >= bound,
    ">": lambda one, bound: one.low > bound,
    "<=": lambda one, bound: one.high <= bound,
    "<": lambda one, bound: one.high < bound,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement; `key` has an empty check where none was named."""

    text: str
    key: MeasureKey | None
    sign: str = ""
    bound: float = 0.0


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """Whether a requirement is met, and what was found."""

    rule: str
    met: bool
    found: str

    def __str__(self) -> str:
        return f"{'met' if self.met else 'not met'}: required {self.rule}; found {self.found}."


def parse_requirement(text: str) -> Requirement:
    """Read a requirement.

    >>> parse_gate("faithfulness.flip_lime[masking] < 0.1").key
    Key(check='faithfulness', measure='flip_lime', setting='masking')
    """
    plain = text.strip()
    if plain == SAME_ANSWER:
        return Requirement(SAME_ANSWER, None)
    found = REQUIREMENT_PATTERN.fullmatch(plain)
    if not found:
        raise ConfigError(
            f"--require got {text!r}; it must be {SAME_ANSWER}, or a measure, one of >= > <= < and a "
            "number, as degree>=-0.05 or faithfulness.flip_lime[masking]<0."
        )
    key = MeasureKey(found["check"] or "", found["measure"], found["setting"])
    return Requirement(plain, key, found["sign"], float(found["bound"]))


def check_requirement(gate: Requirement, compared: ComparisonRecord) -> RequirementResult:
    """Hold the comparison against a requirement; every pair must meet it."""
    if gate.key is None:
        return _same_answer(compared)
    key, met, told = _resolve_key(gate.key, compared), True, []
    for pair in compared.pairs:
        found = pair.find(key)
        if found is None:
            met = False
            told.append(
                f"{_pair_name(pair)}: none, {pair.only_one.get(str(key), 'it is not in both')}"
            )
            continue
        one = found.difference
        met = met and not isnan(one.low) and BOUND_TESTS[gate.sign](one, gate.bound)
        end = "no interval" if isnan(one.low) else f"[{one.low:z.4f}, {one.high:z.4f}]"
        told.append(f"{_pair_name(pair)}: {one.value:z.4f} {end}, n = {one.n}")
    return RequirementResult(gate.text, met, "; ".join(told))


def _pair_name(pair: SidePair) -> str:
    return f"{pair.second} − {pair.first}"


def _same_answer(compared: ComparisonRecord) -> RequirementResult:
    if compared.kind == "methods":
        raise ConfigError(f"{SAME_ANSWER} is about runs; methods of one run share its answer.")
    answers = [one.answer for one in compared.sides]
    told = ", ".join(f"{one.name}: {one.answer}" for one in compared.sides)
    return RequirementResult(SAME_ANSWER, len(set(answers)) == 1, told)


def _resolve_key(key: MeasureKey, compared: ComparisonRecord) -> MeasureKey:
    """The one key that is meant; refused where none is, or several are."""
    known = dict.fromkeys(_compared_keys(compared))
    if key.measure == DEGREE_KEY.measure and not key.check and compared.kind == "runs":
        return DEGREE_KEY
    fits = [
        one for one in known if one[1:] == key[1:] and (not key.check or one.check == key.check)
    ]
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise ConfigError(
            f"--require names {key.measure}, which several checks have; say which: "
            f"{', '.join(map(str, fits))}."
        )
    names = {name: None for one in known for name in (str(one), str(one._replace(check="")))}
    near = get_close_matches(str(key), list(names), n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ConfigError(f"--require names {key}, which was not compared.{hint}")


def _compared_keys(compared: ComparisonRecord) -> Iterator[MeasureKey]:
    return (one.key for _, one in compared.rows)
