"""Names for parts: found, suggested, refused, and brought along by plug-ins."""

import importlib
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from heedful.checks.registry import CheckRegistry
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


def install(folder, entries, module="class Rattle:\n    '''Shakes.'''\n", name="toybox"):
    """What pip would leave behind of a plug-in, in a folder of its own."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    (folder / f"{name}_of_a_test.py").write_text(module)
    sys.modules.pop(f"{name}_of_a_test", None)  # that of the test before


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


LOOKS = [len, list, lambda r: "rattle" in r, lambda r: r["drum"], lambda r: r.build("drum")]


def refused(registry):
    """The one message that every use of the registry ends with, again and again."""
    found, before = set(), dict(registry._parts)
    for look in (*LOOKS, *LOOKS):
        with pytest.raises(ConfigError) as caught:
            look(registry)
        found.add(str(caught.value))
        assert registry._parts == before  # never half loaded
    (message,) = found
    return message


def test_a_plug_in_cannot_take_a_name_and_others_are_not_lost_in_silence(tmp_path, monkeypatch):
    install(
        tmp_path,
        "[heedful.toys]\nbell = toybox_of_a_test:Rattle\ndrum = toybox_of_a_test:Rattle\n"
        "rattle = toybox_of_a_test:Rattle\n",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert refused(drums()) == (
        "Two toys want the name 'drum': that of the package toybox (toybox_of_a_test:Rattle) and "
        "that of heedful itself. Rename it in its package, or remove the package."
    )


def test_two_packages_cannot_have_one_name(tmp_path, monkeypatch):
    for name in ("toybox", "attic"):
        (tmp_path / name).mkdir()
        install(tmp_path / name, f"[heedful.toys]\nrattle = {name}_of_a_test:Rattle\n", name=name)
        monkeypatch.syspath_prepend(str(tmp_path / name))
    message = refused(drums())
    assert message.startswith("Two toys want the name 'rattle': that of the package ")
    assert "the package attic (attic_of_a_test:Rattle)" in message
    assert "the package toybox (toybox_of_a_test:Rattle)" in message


def test_a_plug_in_that_registers_itself_too_is_one_part(tmp_path, monkeypatch):
    module = """
from test_registry_shared import REGISTRY

@REGISTRY.register("rattle")
class Rattle:
    pass
"""
    registry = drums()
    monkeypatch.setitem(sys.modules, "test_registry_shared", SimpleNamespace(REGISTRY=registry))
    install(tmp_path, "[heedful.toys]\nrattle = toybox_of_a_test:Rattle\n", module)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert tuple(registry) == ("drum", "whistle", "rattle")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("class Bell: pass", "AttributeError: module 'toybox_of_a_test' has no attribute 'Rattle'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise OSError('no disk.')", "OSError: no disk"),
        ("raise RuntimeError", "RuntimeError"),
        ("Rattle = (", "SyntaxError: "),
        ("Rattle = 3", "it must be a class or a function, not 3"),
    ],
)
def test_a_broken_plug_in_is_named_in_the_error_each_time(module, why, tmp_path, monkeypatch):
    install(tmp_path, "[heedful.toys]\nrattle = toybox_of_a_test:Rattle\n", module)
    monkeypatch.syspath_prepend(str(tmp_path))
    message = refused(drums())
    begins = "The plug-in 'rattle' of the package toybox (toybox_of_a_test:Rattle) cannot be loaded"
    assert message.startswith(f"{begins}: {why}")
    assert message.endswith(". Mend its package, or remove it.")


def test_once_it_is_mended_the_plug_in_is_there(tmp_path, monkeypatch):
    install(tmp_path, "[heedful.toys]\nrattle = toybox_of_a_test:Rattle\n", "raise ValueError(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = drums()
    refused(registry)
    (tmp_path / "toybox_of_a_test.py").write_text("class Rattle: 'Shakes again, and longer.'")
    importlib.invalidate_caches()
    assert tuple(registry) == ("drum", "whistle", "rattle")


SPEC = """
from heedful.extend import CheckSpec

class Rattle: pass

SPEC = CheckSpec("rattle", "Does it rattle?", (), Rattle)
"""


def test_a_plug_in_brings_a_check_by_its_description(tmp_path, monkeypatch):
    install(tmp_path, "[heedful.checks]\nrattle = toybox_of_a_test:SPEC\n", SPEC)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = CheckRegistry("check")
    assert registry.spec("rattle").question == "Does it rattle?"
    assert registry["rattle"].__name__ == "Rattle"


def test_a_check_without_a_description_is_refused(tmp_path, monkeypatch):
    install(tmp_path, "[heedful.checks]\nrattle = toybox_of_a_test:Rattle\n", SPEC)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "it must be a heedful.extend.CheckSpec" in refused(CheckRegistry("check"))
