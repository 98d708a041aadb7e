"""What users of relevance propagation are told, once in a process, apart from any output."""

import logging
from functools import cache

PATENT_NOTICE = (
    "Layer-wise relevance propagation is patented; its authors allow personal and scientific use. "
    "For other uses have your rights examined first."
)


@cache
def warn_patent() -> None:
    """Say it on stderr, or wherever the program's log goes; the second time nothing is said."""
    logging.getLogger("heedful").warning(PATENT_NOTICE)
