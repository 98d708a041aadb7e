"""What the tests of hostile input share."""

from dataclasses import replace

from jaxtyping import config

from heedful.models.recurrent.model_folder import save_model
from support import subjects

SCRIPT = "</script><script>alert('w1')</script><img src=x onerror=alert(1)>"


def as_in_use():
    """Types unchecked, as users run it: what is refused here, our own messages refuse."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)


def small_model(tmp_path_factory):
    """A model folder that reads fifty words at most."""
    folder = tmp_path_factory.mktemp("hostile") / "model"
    save_model(replace(subjects.subject(), max_words=50), folder)
    return folder


def refused(answer):
    """The one clear line."""
    code, out, err = answer
    assert (code, out) == (2, "")
    assert err.startswith("heedful: ")
    assert err.count("\n") == 1
    assert len(err) < 2000  # a clear line is one that can be read
    return err
