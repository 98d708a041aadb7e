"""How well a check tells honest attention from dishonest, as far as that has been measured."""

UNKNOWN = "power not measured"


def power_told(check: str) -> str:  # noqa: ARG001 - figures by check will stand here
    """The check's power in words.

    >>> power_told("agreement")
    'power not measured'
    """
    return UNKNOWN
