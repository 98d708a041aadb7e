"""The descriptions of the checks of a run: of this installation, or as the run recorded them."""

from collections.abc import Mapping
from typing import Any

from heedful.checks import CheckSpec, checks


def find_spec(check: str, manifest: Mapping[str, Any] | None = None) -> CheckSpec:
    """The description of a check; a bare one where neither this installation nor the run has it."""
    if check in checks:
        return checks.spec(check)
    recorded = ((manifest or {}).get("checks") or {}).get(check)
    return CheckSpec.from_dict(check, recorded) if recorded else CheckSpec(check, "", (), "")
