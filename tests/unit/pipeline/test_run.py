"""A finished run: its rows as a frame, its copy, and what it says when something is missing."""

import json
import sys
from hashlib import sha256
from math import isnan

import pytest

import heedful
from heedful.api.run import Run
from heedful.core.errors import ConfigError, RunError
from heedful.models.recurrent.subject import RecurrentSubject
from support import subjects

ROWS = [
    {
        "text": " ".join(subjects.WORDS[number : number + 1 + number % 5]),
        "other": " ".join(subjects.WORDS[number + 3 : number + 9]),
        "label": number % 2,
    }
    for number in range(10)
]
SETTINGS = {
    "checks": ("permutation",),
    "settings": {"permutation": {"draws": 5}},
    "resamples": 100,
    "instances_per_job": 4,
}
MEASURES = ("median_tvd", "leverage", "median_of_leverage", "max_attention")


def audited(out, model=None, data=ROWS):
    return heedful.audit(model or subjects.subject(), data, out=out, **SETTINGS)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("runs") / "one")


def test_the_frame_is_the_table_of_the_contract(run):
    frame = run.to_dataframe()
    names = ["instance", "predicted", "label", "check", "measure"]
    keys = ["method", "layer", "head", "seed", "setting"]
    assert list(frame.columns) == [*names, *keys, "value"]
    assert frame["instance"].dtype == "int64"
    assert frame["value"].dtype == "float64"
    for name in names[1:]:
        assert frame[name].map(type).eq(str).all()
    assert frame[keys].isna().all(axis=None)
    assert set(frame["measure"]) == set(MEASURES)
    for _, part in frame.groupby("measure"):
        assert part["instance"].tolist() == list(range(10))
    assert frame["label"].tolist()[:4] == ["class0", "class1"] * 2


def test_values_that_do_not_exist_are_nan(run):
    frame = run.to_dataframe()
    share = frame[frame["measure"] == "median_of_leverage"].set_index("instance")["value"]
    assert isnan(share[0])  # one word: no attention can do anything
    assert isnan(share[5])
    assert share.notna().sum() == 8


def test_the_verdict_rests_on_the_rows(run):
    frame = run.to_dataframe()
    estimates = run.verdict.checks["permutation"].estimates
    means = frame.groupby("measure")["value"].mean()
    for measure in MEASURES[:3]:
        assert estimates[measure].value == pytest.approx(means[measure])


def test_the_manifest_holds_what_the_contract_names(run):
    manifest = run.manifest
    assert manifest["data"]["texts"] == 10
    assert manifest["model"]["sha256"] == subjects.subject().fingerprint()
    assert (manifest["seed"], manifest["device"], manifest["dtype"]) == (0, "cpu", "float64")
    assert (manifest["attention_path"], manifest["level"]) == ("own", 0.95)
    assert 0 <= manifest["parity"] < 1e-9
    assert manifest["seconds"]["permutation"].keys() == {"cpu", "wall"}
    assert manifest["versions"].keys() >= {"heedful", "torch", "numpy", "python"}


def test_show_prints_the_card(run, capsys):
    run.show()
    assert "Does attention explain bilstm-additive?" in capsys.readouterr().out


def test_without_pandas_the_frame_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RunError) as caught:
        run.to_dataframe()
    assert str(caught.value) == "to_dataframe needs pandas: pip install pandas."


def test_a_saved_run_is_the_same_run(run, tmp_path):
    saved = run.save(tmp_path / "deep" / "copy")
    assert saved.folder == tmp_path / "deep" / "copy"
    assert saved.verdict == run.verdict
    assert saved.manifest == run.manifest
    assert saved.to_dataframe().equals(run.to_dataframe())


@pytest.mark.parametrize("kind", ["mkdir", "touch"])
def test_save_refuses_what_exists(run, tmp_path, kind):
    getattr(tmp_path / "copy", kind)()
    with pytest.raises(RunError) as caught:
        run.save(tmp_path / "copy")
    assert str(caught.value) == f"{tmp_path / 'copy'} exists already; save to a new folder."


def test_save_below_a_file_is_named(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="file"):
        run.save(tmp_path / "file" / "copy")


@pytest.mark.parametrize(
    ("ask", "name"), [("verdict", "verdict.json"), ("manifest", "manifest.json")]
)
def test_an_interrupted_run_says_how_to_finish_it(tmp_path, ask, name):
    with pytest.raises(RunError) as caught:
        getattr(Run(tmp_path), ask)
    assert str(caught.value) == (
        f"{tmp_path} has no {name}: not a run folder, or a run that was interrupted. "
        "The same `heedful audit` command again finishes it."
    )


def test_a_folder_without_rows_has_no_frame(tmp_path):
    with pytest.raises(RunError, match=r"holds no measurements; is it a run folder\?$"):
        Run(tmp_path).to_dataframe()


@pytest.mark.parametrize("ask", ["verdict", "manifest"])
def test_a_damaged_file_is_named(tmp_path, ask):
    (tmp_path / f"{ask}.json").write_text("{")
    with pytest.raises(RunError, match=ask):
        getattr(Run(tmp_path), ask)


def test_the_same_audit_again_changes_no_byte(tmp_path):
    first = audited(tmp_path / "run")
    before = {one: one.read_bytes() for one in first.folder.rglob("*") if one.is_file()}
    audited(tmp_path / "run")
    assert {one: one.read_bytes() for one in first.folder.rglob("*") if one.is_file()} == before


def test_another_model_in_the_same_folder_leaves_no_old_rows(tmp_path):
    audited(tmp_path / "run")
    try:
        frame = audited(tmp_path / "run", subjects.subject(seed=1)).to_dataframe()
    except RunError:
        return  # to refuse the folder would be as good
    assert not frame.duplicated(["instance", "measure"]).any()


def cut_off(folder):
    """Leave what an interrupted audit leaves: the first job of three, and the records of it."""
    for path in sorted((folder / "measurements").iterdir())[1:]:
        path.unlink()
    lines = (folder / "files.jsonl").read_text().splitlines(keepends=True)
    kept = [
        one for one in lines if "file" not in one or (folder / json.loads(one)["file"]).exists()
    ]
    (folder / "files.jsonl").write_text("".join(kept))


def test_a_run_is_not_continued_in_another_precision(tmp_path):
    cut_off(audited(tmp_path / "run").folder)
    other = subjects.subject()
    other.network.float()
    with pytest.raises(RunError) as caught:
        audited(tmp_path / "run", other)
    assert str(caught.value) == (
        f"{tmp_path / 'run'} holds measurements of another model, of this model in another "
        "precision (dtype), or of other data under the same names. Choose another --out, or "
        "remove the folder."
    )


def test_nor_is_that_of_a_subject_whose_fingerprint_does_not_know_its_precision(tmp_path):
    one, other = (Rounded(**vars(subjects.subject())) for _ in range(2))
    cut_off(audited(tmp_path / "run", one).folder)
    other.network.float()
    assert one.fingerprint() == other.fingerprint()
    before = sorted((tmp_path / "run" / "measurements").iterdir())
    with pytest.raises(RunError) as caught:
        audited(tmp_path / "run", other)
    assert str(caught.value) == (
        f"{tmp_path / 'run'} holds measurements in float64, and the model now computes in "
        "float32. Load it in float64 to continue the run, or choose another --out."
    )
    assert sorted((tmp_path / "run" / "measurements").iterdir()) == before
    audited(tmp_path / "run", one)


class Rounded(RecurrentSubject):
    def fingerprint(self):
        return str([float(one.float().sum().round()) for one in self.network.parameters()])


def test_another_column_of_the_same_file_is_measured_anew(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    audited(tmp_path / "run", data=heedful.read(path))
    other = heedful.read(path, fields={"text": "other"})
    fresh = audited(tmp_path / "fresh", data=other).verdict
    try:
        again = audited(tmp_path / "run", data=other).verdict
    except RunError:
        return  # to refuse the folder would be as good
    assert again.checks == fresh.checks


def test_a_card_and_a_reviewer_s_page_are_written(run, tmp_path):
    card = run.write_card(tmp_path / "card.md")
    assert card.read_text(encoding="utf-8") == run.card()
    run.write_card(card)  # our own may be written again
    (tmp_path / "README.md").write_text("# My model\n")
    with pytest.raises(RunError, match="was not written by this command"):
        run.write_card(tmp_path / "README.md")
    assert (tmp_path / "README.md").read_text() == "# My model\n"
    for name in ("page.html", "page.md"):
        text = run.reviewer_page(tmp_path / name).read_text(encoding="utf-8")
        assert sha256((run.folder / "verdict.json").read_bytes()).hexdigest() in text
    with pytest.raises(ConfigError, match=r"ends in .html or .md"):
        run.reviewer_page(tmp_path / "page.pdf")
