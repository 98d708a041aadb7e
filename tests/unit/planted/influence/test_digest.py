"""Digests: a changed subject, text or truth needs a new version."""

from dataclasses import replace

import pytest

from heedful.planted.influence import digest, kind
from heedful.planted.influence.kind import InfluenceTruth, PlantedModel, influence_kinds

NAME = "lengths-short-graded"


@pytest.mark.parametrize(
    "name", [name for name, one in influence_kinds().items() if not one.trained]
)
def test_digests_hold(name):
    assert digest.digest_kind(name) == digest.read_digests()[name], (
        "A subject, text or truth changed: raise INFLUENCE_VERSION, then run "
        "python -m heedful.planted.influence.digest --write"
    )


def test_digests_are_of_kinds_that_exist():
    assert set(digest.read_digests()) <= set(influence_kinds())


def change_truth(known):
    return replace(known, truth=InfluenceTruth(used=False, ranks=True))


def change_subject(known):
    def build(setting):
        planted = known.build(setting)
        table = planted.subject.table.clone()
        table[:, 0] += 0.001 * (table[:, 0] > table[:, 0].median())
        return PlantedModel(replace(planted.subject, table=table), planted.draw)

    return replace(known, build=build)


def change_texts(known):
    def build(setting):
        planted = known.build(setting)

        def draw(stream, mean):
            one = planted.draw(stream, mean)
            return replace(one, tiers=one.tiers[::-1])

        return PlantedModel(planted.subject, draw)

    return replace(known, build=build)


@pytest.mark.parametrize("change", [change_truth, change_subject, change_texts])
def test_a_change_is_noticed(change, monkeypatch):
    before = digest.digest_kind(NAME)
    monkeypatch.setitem(kind._KINDS, NAME, change(influence_kinds()[NAME]))
    assert digest.digest_kind(NAME) != before


def test_a_changed_transformer_is_noticed(monkeypatch):
    name = "positions-sink"
    known, before = influence_kinds()[name], digest.digest_kind(name, seeds=(0,))

    def build(setting):
        planted = known.build(setting)
        planted.subject.model.classifier.weight[1, 0] += 0.001
        return planted

    monkeypatch.setitem(kind._KINDS, name, replace(known, build=build))
    assert digest.digest_kind(name, seeds=(0,)) != before


def test_the_command_writes_and_compares(tmp_path, monkeypatch, capsys):
    few = {NAME: influence_kinds()[NAME]}
    few["trained"] = replace(few[NAME], name="trained", trained=True)
    monkeypatch.setattr(kind, "_KINDS", few)
    monkeypatch.setattr(digest, "DIGESTS", tmp_path / "digests.json")
    assert digest.main(["--write"]) == 0
    assert list(digest.read_digests()) == [NAME]
    assert digest.main([]) == 0
    few[NAME] = change_truth(few[NAME])
    assert digest.main([]) == 1
    assert f"{NAME} differs" in capsys.readouterr().out
