"""What the tests of this room share."""

import pytest
from jaxtyping import config


@pytest.fixture
def as_in_use():
    """Types unchecked, as users run it: what is refused here, our own messages refuse."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)
