"""How often a check is right where the truth is known, in words."""

from collections.abc import Mapping

from heedful.core.records import CheckResult
from heedful.results.run_records import sanitise_text

UNKNOWN = "power not measured"


def describe_check_power(result: CheckResult, claim: str) -> str:
    """A check's power on a claim.

    >>> describe_check_power(CheckResult("undecided", "", {}), "ranks")
    'power not measured'
    """
    known: Mapping[str, object] = result.power.get(claim, {})
    return sanitise_text(str(known.get("description", UNKNOWN)))


def describe_check_powers(result: CheckResult) -> str:
    """Its power on every claim it votes on, in one line."""
    if not result.power:
        return UNKNOWN
    return "; ".join(f"{claim}: {describe_check_power(result, claim)}" for claim in result.power)
