"""Input that means harm or is merely broken: one clear line and exit code 2, or it works."""

import csv
import gzip
import json
from dataclasses import replace
from io import BytesIO, StringIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.models.recurrent.model_folder import save_model
from support import subjects
from support.hostile_input import SCRIPT, as_in_use, refused, small_model

as_in_use = pytest.fixture(autouse=True)(as_in_use)
model = pytest.fixture(scope="module")(small_model)

GOOD = [
    {"text": f"w{i} w{i + 1} w{i + 2}", "label": ("class0", "class1")[i % 2]} for i in range(20)
]
PLAN = "resamples = 100\n[settings.adversarial]\nsteps = 5\n[settings.permutation]\ndraws = 5\n"


def lines(*rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def row(text, label="class1"):
    return {"text": text, "label": label}


@pytest.fixture
def audit(run, model, tmp_path):
    """Audit bytes as a file of the given name."""
    (tmp_path / "plan.toml").write_text(PLAN)

    def call(content, name="rows.jsonl", *, subject=model):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        words = ("audit", subject, path, "--out", tmp_path / "run", "--plan")
        return run(*words, tmp_path / "plan.toml")

    return call


def assert_escaped(run):
    """Nothing that came in stands in the page as markup."""
    for page in run.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<script>alert(" not in text
        assert "<img src=x" not in text


REFUSED = {
    "missing": ("rows.jsonl", None, "There is no file or folder"),
    "empty": ("rows.jsonl", b"", "is empty; it must have at least one row"),
    "broken json": ("rows.jsonl", b'{"text": "w1", "la\n' * 3, "3 not JSON (lines 1, 2, 3)"),
    "json of lists": ("rows.jsonl", b"[1]\n[2]\n", "2 not an object"),
    "deep json": ("rows.jsonl", b"[" * 200_000, "1 not JSON (line 1)"),
    "empty text": ("rows.jsonl", lines(*GOOD, row("  \t")), "1 no text (line 21)"),
    "text is null": ("rows.jsonl", lines(*GOOD, row(None)), "1 no text (line 21)"),
    "text is a number": ("rows.jsonl", lines(*GOOD, row(7)), "1 no text (line 21)"),
    "lone surrogate": ("rows.jsonl", lines(*GOOD, row("w1 \ud800")), "1 not UTF-8 (line 21)"),
    "unknown label": ("rows.jsonl", lines(*GOOD, row("w1", "so-so")), "got 'so-so'"),
    "label is a list": ("rows.jsonl", lines(*GOOD, row("w1", ["a"])), "1 bad label (line 21)"),
    "endless label": ("rows.jsonl", lines(*GOOD, row("w1", "x" * 10_000)), "unknown label"),
    "script label": ("rows.jsonl", lines(*GOOD, row("w1", SCRIPT)), "unknown label"),
    "label of lines": ("rows.jsonl", lines(*GOOD, row("w1", "a\nb\r\x1b[31mc")), "unknown label"),
    "no columns": ("rows.jsonl", lines({"a": 1}, {"a": 2}), "has no column"),
    "endless column": ("rows.jsonl", lines({"x" * 10_000: 1}), "has no column"),
    "utf-16 jsonl": ("rows.jsonl", "\n".join(map(json.dumps, GOOD)).encode("utf-16"), "UTF-8"),
    "utf-16 csv": ("rows.csv", "text,label\nw1,class0\n".encode("utf-16"), "UTF-8"),
    "nul bytes": ("rows.jsonl", bytes(1000), "not JSON (line 1)"),
    "nul csv": ("rows.csv", bytes(1000) + b"\n\0", "has no column"),
    "open quote": ("rows.csv", b'text,label\n"w1,class0\nw2,class1\n', "never closes"),
    "not parquet": ("rows.parquet", lines(*GOOD), "not a valid Parquet file"),
    "not gzip": ("rows.jsonl.gz", lines(*GOOD), "not a valid gzip file"),
    "cut gzip": ("rows.jsonl.gz", gzip.compress(lines(*GOOD))[:-9], "is truncated"),
    "unknown ending": ("rows.exe", lines(*GOOD), "has an unknown extension"),
    "script name": ("<script>alert(1)<script>.jsonl", None, "There is no file or folder"),
    "nul in name": ("ro\0ws.jsonl", None, "There is no file or folder"),
    "endless name": ("x" * 10_000, None, "cannot be read: File name too long"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_audited_gets_one_line(audit, case):
    name, content, said = REFUSED[case]
    assert said in refused(audit(content, name))


def as_csv(rows, end="\n"):
    text = StringIO()
    writer = csv.DictWriter(text, ["text", "label"], lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def parquet(**columns):
    stream = BytesIO()
    plain = {name: [one[name] for one in GOOD] for name in GOOD[0]}
    pq.write_table(pa.table({**plain, **columns}), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ms"), pa.timestamp("us"), pa.date64(), pa.duration("s")]
)
def test_dates_that_python_cannot_hold(audit, kind):
    odd = pa.array([2**62 // 86_400_000 * 86_400_000] * 20, pa.int64()).view(kind)
    assert "20 a date out of range (lines 1, 2" in refused(audit(parquet(at=odd), "rows.parquet"))
    odd = parquet(text=pa.array([b"w1 \xff"] * 20))
    assert "20 no text" in refused(audit(odd, "rows.parquet"))


WORKS = {
    "one class": ("rows.jsonl", lines(*[row("w1 w2 w3")] * 20)),
    "one text": ("rows.jsonl", lines(row("w1 w2 w3"))),
    "one word": ("rows.jsonl", lines(*[row("w1")] * 5)),
    "unknown words": ("rows.jsonl", lines(*[row("never seen before")] * 5)),
    "right to left": ("rows.jsonl", lines(*GOOD, row("\u202eשלום עולם مرحبا بالعالم\u202c"))),
    "emoji": ("rows.jsonl", lines(*GOOD, row("w1 👩‍👩‍👧‍👦 🇩🇪 e\u0301 \U0001f9d1🏽‍🚀"))),
    "nul in text": ("rows.jsonl", lines(*GOOD, row("w1 \0 w2\0w3"))),
    "controls in text": ("rows.jsonl", lines(*GOOD, row("w1 \x1b[31m\x07\u2028\x85 w2"))),
    "script in text": ("rows.jsonl", lines(*GOOD, row(f"w1 {SCRIPT} w2"))),
    "formula in csv": ("rows.csv", as_csv([*GOOD, row("=cmd|' /C calc'!A0")])),
    "padding's own word": ("rows.jsonl", lines(*GOOD, row("<PAD> <SOS> <EOS> <UNK>"))),
    "crlf jsonl": ("rows.jsonl", lines(*GOOD).replace(b"\n", b"\r\n")),
    "crlf csv": ("rows.csv", as_csv(GOOD, "\r\n")),
    "bom csv": ("rows.csv", b"\xef\xbb\xbf" + as_csv(GOOD)),
    "script name": ("<script>alert(1)<script>.jsonl", lines(*GOOD)),
    "name with a line": ("a\nb\x1b[31m 😀.jsonl", lines(*GOOD)),
    "empty gzip members": ("r.jsonl.gz", gzip.compress(b"") + gzip.compress(lines(*GOOD))),
}


@pytest.mark.parametrize("case", WORKS)
def test_what_is_only_strange_works(audit, tmp_path, case):
    name, content = WORKS[case]
    code, out, err = audit(content, name)
    assert (code, err) == (0, "")
    assert "Does attention explain" in out
    assert json.loads((tmp_path / "run/verdict.json").read_text())["answer"]
    assert_escaped(tmp_path / "run")


@pytest.mark.parametrize("kind", ["words", "a cell of 10 MB"])
def test_an_endless_text_is_cut_at_the_models_limit_and_counted(audit, tmp_path, kind):
    if kind == "words":
        answer = audit(lines(*GOOD, row("w1 " * 100_000)))
    else:
        answer = audit(as_csv([*GOOD, row(f"w1 {'x' * 197} " * 50_000)]), "rows.csv")
    assert answer[0] == 0
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["truncated"] == 1


def test_one_bad_row_in_a_hundred_is_left_out_and_told(audit, tmp_path):
    assert audit(lines(*GOOD * 5) + b"\xff{\n")[0] == 0
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["data"]["bad_rows"] == "1 bad row: 1 not UTF-8 (line 101)"


@pytest.mark.parametrize("label", [SCRIPT, "x" * 10_000, "[bold]לא[/bold] 👍", "a\nb\x1b[31m\0"])
def test_strange_labels_of_a_model_work(audit, tmp_path, label):
    subject = replace(subjects.subject(), labels=("class0", label))
    save_model(subject, tmp_path / "model")
    rows = [row(one["text"], ("class0", label)[i % 2]) for i, one in enumerate(GOOD)]
    code, _, err = audit(lines(*rows), subject=tmp_path / "model")
    assert (code, err) == (0, "")
    assert json.loads((tmp_path / "run/manifest.json").read_text())["labels"] == ["class0", label]
    assert_escaped(tmp_path / "run")
