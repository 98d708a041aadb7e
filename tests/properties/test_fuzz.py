"""Any bytes at all where a file is read: our own error comes out, or what was asked for."""

import gzip
import json
from contextlib import suppress
from dataclasses import fields
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jaxtyping import config

import heedful
from heedful.api.run import Run
from heedful.core.errors import ConfigError, DataError, ModelError, RunError
from heedful.core.values import Example
from heedful.data import read
from heedful.models.recurrent.model_folder import load_model, save_model
from heedful.pipeline.plan.plan import Plan, parse_plan
from support import subjects

FEW, MANY = 50, 3000
ROWS = [{"text": f'w{i} é\n\t, "w1"', "label": i % 2, "tokens": ["a", "b"]} for i in range(8)]


@pytest.fixture(params=[FEW, pytest.param(MANY, marks=pytest.mark.study)])
def fuzz(request):
    """Put drawn values to a function; types unchecked, as users run it."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)

    def put(strategy, function):
        checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
        limits = settings(max_examples=request.param, suppress_health_check=checks)
        limits(given(strategy)(lambda value: function(value)))()

    yield put
    config.update("jaxtyping_disable", before)


places = st.floats(0, 1)
changes = st.lists(st.tuples(places, st.integers(0, 8), st.binary(max_size=8)), max_size=5)


def changed(raw, edits):
    """Bytes with some of them replaced, removed or added."""
    for place, length, new in edits:
        start = int(place * len(raw))
        raw = raw[:start] + new + raw[start + length :]
    return raw


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**30, -1, 0, 2**63, 1e308, "", "\0", "w1", "😀"])
)
json_values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)


def paths(value, above=()):
    """The way to every part of a JSON value."""
    yield above
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, one in inner:
        yield from paths(one, (*above, key))


def replaced(value, way, new):
    if not way:
        return new
    copy = value.copy()
    copy[way[0]] = replaced(value[way[0]], way[1:], new)
    return copy


def edited_json(text):
    """JSON with one part replaced by anything else."""
    value = json.loads(text)
    ways = st.sampled_from(list(paths(value)))
    edits = st.tuples(ways, json_values)
    return edits.map(lambda edit: json.dumps(replaced(value, *edit)).encode())


def broken(raw):
    """Bytes of any kind, and sound ones that were damaged."""
    return st.binary(max_size=200) | changes.map(lambda edits: changed(raw, edits))


def parquet():
    stream = BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), stream, compression="none")
    return stream.getvalue()


LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
CSV = b'text,label,tokens\nw1,0,"[""a""]"\n"two\nlines",1,\n'
FILES = {
    ".jsonl": broken(LINES),
    ".csv": broken(CSV),
    ".parquet": broken(parquet()),
    ".jsonl.gz": broken(gzip.compress(LINES)) | broken(LINES).map(gzip.compress),
}


@pytest.mark.parametrize("ending", FILES)
def test_readers(fuzz, ending, tmp_path):
    path = tmp_path / f"rows{ending}"

    def one(raw):
        path.write_bytes(raw)
        with suppress(DataError):
            data = read(path)
            assert len(list(data)) == len(data)

    fuzz(FILES[ending], one)


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_readers_of_sound_files_with_odd_values(fuzz, kind, tmp_path):
    cells = st.dictionaries(st.sampled_from(["text", "label", "tokens", "rationale"]), json_values)
    lists = st.lists(json_values if kind == "columns" else cells, min_size=1, max_size=4)
    path = tmp_path / "rows.jsonl"

    def one(rows):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with suppress(DataError):
            assert list(read(path))

    fuzz(lists, one)


KEYS = [one.name for one in fields(Plan)]
SIGNS = """= [ ] [[ . \" ' { } , # 1 -1 inf nan 1e9 0x1 true 1979-05-27 adversarial epsilon"""
words = st.sampled_from([*KEYS, *SIGNS.split(), " = ", "settings.", "\n", '"""'])
toml_like = st.lists(words | st.text(max_size=5), max_size=12).map("".join)


def test_plans_of_any_text(fuzz):
    def one(text):
        with suppress(ConfigError):
            parse_plan(text)
        with suppress(ConfigError):
            Plan.from_toml('model = "m"\ndata = "d"\n' + text)

    fuzz(toml_like, one)


def test_plans_of_any_values(fuzz):
    names = ["agreement", "permutation", "adversarial", "mechanism", "x"]
    tables = st.dictionaries(
        st.sampled_from(["steps", "epsilon", "draws", "methods", "count", "x"]), json_values
    )
    odd = st.dictionaries(st.sampled_from(KEYS), json_values, max_size=3)
    nested = st.dictionaries(st.sampled_from(names), json_values | tables, max_size=2)

    def one(drawn):
        raw, settings = drawn
        whole = {"model": "m", "data": "d", "settings": settings, **raw}
        with suppress(ConfigError):
            plan = Plan(**whole)
            assert Plan.from_toml(plan.to_toml()) == plan
        with suppress(TypeError):  # TOML has no null
            text = tomli_w.dumps(whole)
            with suppress(ConfigError):
                Plan.from_toml(text)

    fuzz(st.tuples(odd, nested), one)


MODEL = ("model.safetensors", "heedful.json", "vocabulary.json")


@pytest.mark.parametrize("name", MODEL)
def test_model_folders(fuzz, name, tmp_path):
    save_model(subjects.subject(), tmp_path)
    raw = (tmp_path / name).read_bytes()
    cases = broken(raw) if name == MODEL[0] else broken(raw) | edited_json(raw)

    def one(content):
        (tmp_path / name).write_bytes(content)
        with suppress(ModelError):
            subject = load_model(tmp_path)
            batch = subject.batch([subject.encode(Example(0, "w1 w2 new", 0))])
            assert subject.forward(batch).logits.shape == (1, 2)
            assert subject.fingerprint()

    fuzz(cases, one)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, to be damaged."""
    out = tmp_path_factory.mktemp("fuzz") / "run"
    rows = [{"text": "w1 w2 w3", "label": "class0"}] * 4
    small = {"checks": ("permutation",), "settings": {"permutation": {"draws": 3}}}
    return heedful.audit(subjects.subject(), rows, out=out, resamples=100, **small).folder


@pytest.mark.parametrize("name", ["verdict", "manifest"])
def test_run_folders(fuzz, name, finished):
    path = finished / f"{name}.json"
    raw = path.read_bytes()

    def one(content):
        path.write_bytes(content)
        with suppress(RunError):
            getattr(Run(finished), name)

    try:
        fuzz(broken(raw) | edited_json(raw), one)
    finally:
        path.write_bytes(raw)


DEEP = "[" * 100_000  # recursion
LONG = "1" * 5000  # Python reads no number of so many digits


@pytest.mark.parametrize("text", [f"seed = {DEEP}", f"seed = {LONG}"])
def test_plans_too_deep_or_too_long(text):
    with pytest.raises(ConfigError):
        parse_plan(text)


@pytest.mark.parametrize(
    ("name", "text"), [("verdict", DEEP), ("manifest", DEEP), ("manifest", "[]")]
)
def test_run_files_too_deep_or_of_another_kind(name, text, tmp_path):
    (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(RunError):
        getattr(Run(tmp_path), name)


@pytest.mark.parametrize("name", MODEL[1:])
def test_model_files_too_deep(name, tmp_path):
    save_model(subjects.subject(), tmp_path)
    (tmp_path / name).write_text(DEEP)
    with pytest.raises(ModelError, match=name):
        load_model(tmp_path)
