"""The tree of errors: drawn at the top of its file, and the one that is raised."""

import inspect
import re

import pytest

import heedful
from heedful.core import errors

CLASSES = {
    name: one
    for name, one in vars(errors).items()
    if inspect.isclass(one) and one.__module__ == errors.__name__
}


def drawn():
    """(name, parent, words) of each line of the drawing; a deeper name hangs on the last above."""
    found, path = [], []
    for line in errors.__doc__.splitlines():
        match = re.fullmatch(r"([│├└─ ]*)([A-Z]\w+)( {2,}(.+))?", line)
        if match:
            depth = len(match[1]) // 4
            path = [*path[:depth], match[2]]
            found.append((match[2], path[-2] if depth else "Exception", match[4]))
    return found


def test_the_drawing_is_the_hierarchy():
    tree = {name: parent for name, parent, _ in drawn()}
    assert len(tree) == len(drawn())
    assert tree == {name: one.__bases__[0].__name__ for name, one in CLASSES.items()}


def test_every_branch_is_explained_in_the_drawing():
    assert [name for name, _, words in drawn() if not words] == ["HeedfulError"]


@pytest.mark.parametrize("name", CLASSES)
def test_every_error_is_public_and_caught_by_the_base(name):
    assert name in heedful.__all__
    assert getattr(heedful, name) is CLASSES[name]
    with pytest.raises(errors.HeedfulError, match=r"^why$"):
        raise CLASSES[name]("why")
