"""Names for parts: found, suggested, refused, and brought along by plug-ins."""

import sys
from dataclasses import dataclass

import pytest

from heedful.core.errors import ConfigError, UnknownName
from heedful.core.registry import Registry


@dataclass(frozen=True)
class Drum:
    """Goes boom.

    And further lines that no list shows.
    """

    beats: int = 4
    loud: bool = True


def drums():
    registry = Registry("toy")
    registry.register("drum")(Drum)
    registry.register("whistle")(lambda: "wheee")
    return registry


def test_names_come_in_the_order_they_were_given():
    registry = drums()
    registry.register("abacus")(Drum)
    assert tuple(registry) == ("drum", "whistle", "abacus")
    assert len(registry) == 3
    assert "abacus" in registry
    assert "kazoo" not in registry


def test_register_gives_the_part_back_and_finds_it_again():
    registry = Registry("toy")
    assert registry.register("drum")(Drum) is Drum
    assert registry["drum"] is Drum


def test_build_makes_the_part_with_its_settings():
    assert drums().build("drum") == Drum()
    assert drums().build("drum", beats=7) == Drum(beats=7)
    assert drums().build("whistle") == "wheee"


def test_summary_is_the_first_line_of_the_documentation():
    assert drums().summary("drum") == "Goes boom."


def test_summary_of_a_part_without_documentation_is_empty():
    assert drums().summary("whistle") == ""


def test_a_part_knows_its_name():
    assert drums().name_of(Drum(beats=7)) == "drum"
    with pytest.raises(UnknownName) as caught:
        drums().name_of(3)
    assert str(caught.value) == "3 is of no registered toy; register its class first."


@pytest.mark.parametrize("ask", [Registry.__getitem__, Registry.build, Registry.summary])
def test_a_near_miss_is_suggested(ask):
    with pytest.raises(UnknownName) as caught:
        ask(drums(), "drun")
    assert str(caught.value) == (
        "No toy is named 'drun'. Did you mean 'drum'? Known: drum, whistle."
    )


def test_a_far_miss_gets_the_names_only():
    with pytest.raises(UnknownName) as caught:
        drums()["xylophone"]
    assert str(caught.value) == "No toy is named 'xylophone'. Known: drum, whistle."


def test_an_unknown_setting_is_an_error():
    with pytest.raises(ConfigError) as caught:
        drums().build("drum", beats=2, pitch=1, ahead=2)
    assert str(caught.value) == "toy 'drum' has no setting 'ahead'. Settings: beats, loud."


def test_a_part_without_settings_says_so():
    with pytest.raises(ConfigError, match=r"^toy 'whistle' has no setting 'pitch'. Settings: none"):
        drums().build("whistle", pitch=1)


def test_a_name_is_given_once():
    registry = drums()
    with pytest.raises(ConfigError, match=r"^Two toys want the name 'drum'; choose another.$"):
        registry.register("drum")(object)
    assert registry["drum"] is Drum


def install(folder, entries, module="class Rattle:\n    '''Shakes.'''\n"):
    """What pip would leave behind of a plug-in, in a folder of its own."""
    info = folder / "toybox-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toybox\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    (folder / "toybox_of_a_test.py").write_text(module)
    sys.modules.pop("toybox_of_a_test", None)  # that of the test before


def test_a_plug_in_is_found_by_its_entry_point(tmp_path, monkeypatch):
    install(
        tmp_path,
        "[heedful.toys]\nrattle = toybox_of_a_test:Rattle\n"
        "[heedful.tools]\nhammer = toybox_of_a_test:Rattle\n",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = drums()
    assert tuple(registry) == ("drum", "whistle", "rattle")
    assert registry.summary("rattle") == "Shakes."
    assert type(registry.build("rattle")).__name__ == "Rattle"
    assert tuple(registry) == ("drum", "whistle", "rattle")  # loaded once, not at every look


@pytest.mark.parametrize("look", [len, list, lambda r: "rattle" in r, lambda r: r["drum"]])
def test_any_look_loads_the_plug_ins(look, tmp_path, monkeypatch):
    install(tmp_path, "[heedful.toys]\nrattle = toybox_of_a_test:Rattle\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = drums()
    assert "rattle" not in registry._parts
    look(registry)
    assert "rattle" in registry._parts


def test_a_plug_in_cannot_take_a_name(tmp_path, monkeypatch):
    install(tmp_path, "[heedful.toys]\ndrum = toybox_of_a_test:Rattle\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="Two toys want the name 'drum'"):
        drums()["drum"]


def test_a_broken_plug_in_is_named_in_the_error(tmp_path, monkeypatch):
    install(tmp_path, "[heedful.toys]\nrattle = toybox_of_a_test:Rattle\n", "import no_such_thing")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="rattle"):
        list(drums())
