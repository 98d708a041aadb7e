"""Requirements on a comparison: `degree>=-0.05`, `comprehensiveness[lime]>0`, `same-answer`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from math import isnan

from heedful.comparison.records import DEGREE_KEY, ComparisonRecord, SidePair
from heedful.core.errors import ConfigError
from heedful.core.records import Estimate, MeasureKey
from heedful.results.schema1 import upgrade_key

SAME_ANSWER = "same-answer"
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
REQUIREMENT_PATTERN = re.compile(
    rf"(?P<name>(?:(?P<check>\w+)\.)?(?P<measure>\w+)(?:\[(?P<setting>[^\[\]]+)\])?)"
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
    """One requirement; `name` is the measure it is about, empty for `same-answer`."""

    text: str
    name: str = ""
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

    >>> parse_requirement("faithfulness.flip[lime, masking] < 0.1").name
    'faithfulness.flip[lime, masking]'
    """
    plain = text.strip()
    if plain == SAME_ANSWER:
        return Requirement(SAME_ANSWER)
    found = REQUIREMENT_PATTERN.fullmatch(plain)
    if not found:
        raise ConfigError(
            f"--require got {text!r}; it must be {SAME_ANSWER}, or a measure, one of >= > <= < and "
            "a number, as degree>=-0.05 or faithfulness.flip[lime, masking]<0."
        )
    return Requirement(plain, found["name"], found["sign"], float(found["bound"]))


def check_requirement(requirement: Requirement, compared: ComparisonRecord) -> RequirementResult:
    """Check a comparison against a requirement; every pair must meet it."""
    if not requirement.name:
        return _same_answer(compared)
    key, met, found = _resolve_key(requirement.name, compared), True, []
    for pair in compared.pairs:
        row = pair.find(key)
        if row is None:
            met = False
            reason = pair.only_one.get(str(key), "it is not in both")
            found.append(f"{_pair_name(pair)}: none, {reason}")
            continue
        one = row.difference
        met = met and not isnan(one.low) and BOUND_TESTS[requirement.sign](one, requirement.bound)
        end = "no interval" if isnan(one.low) else f"[{one.low:z.4f}, {one.high:z.4f}]"
        found.append(f"{_pair_name(pair)}: {one.value:z.4f} {end}, n = {one.n}")
    return RequirementResult(requirement.text, met, "; ".join(found))


def _pair_name(pair: SidePair) -> str:
    return f"{pair.second} − {pair.first}"


def _same_answer(compared: ComparisonRecord) -> RequirementResult:
    if compared.kind == "methods":
        raise ConfigError(f"{SAME_ANSWER} is about runs; methods of one run share its answer.")
    answers = [one.answer for one in compared.sides]
    found = ", ".join(f"{one.name}: {one.answer}" for one in compared.sides)
    return RequirementResult(SAME_ANSWER, len(set(answers)) == 1, found)


def _resolve_key(name: str, compared: ComparisonRecord) -> MeasureKey:
    """The one key that is meant; refused where none is, or several are."""
    known = list(dict.fromkeys(one.key for _, one in compared.rows))
    if name == DEGREE_KEY.measure and compared.kind == "runs":
        return DEGREE_KEY
    fits = [key for key in known if name in (str(key), str(key._replace(check="")))]
    fits = fits or [key for key in known if key in _schema1_keys(name, known)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise ConfigError(
            f"--require names {name}, which several checks have; say which: "
            f"{', '.join(map(str, fits))}."
        )
    names = {name: None for one in known for name in (str(one), str(one._replace(check="")))}
    near = get_close_matches(name, list(names), n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ConfigError(f"--require names {name}, which was not compared.{hint}")


def _schema1_keys(name: str, known: list[MeasureKey]) -> set[MeasureKey]:
    """What a name of schema 1, such as `flip_lime[masking]`, means in each check."""
    found = REQUIREMENT_PATTERN.fullmatch(f"{name}>0")
    assert found is not None  # noqa: S101 - the name was read by this pattern
    names = {found["check"]} if found["check"] else {key.check for key in known}
    return {upgrade_key(check, found["measure"], found["setting"]) for check in names}
