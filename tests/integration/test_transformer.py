"""A transformers folder from the command line and from Python: load, check, audit, refuse."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful
from heedful.core.errors import AttentionUnavailable, ConfigError, ModelError
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.attention_access.supported_families import PATH_BY_FAMILY, REFUSED_FAMILIES
from heedful.models.batch_context import BatchContext
from support import tiny_models, tiny_tokenizers

ROWS = [
    {"text": text, "label": label}
    for text, label in (
        ("a fine film that is so good", "LABEL_1"),
        ("not so bad , in places", "LABEL_0"),
        ("it was the best of all .", "LABEL_1"),
        ("very dull", "LABEL_0"),
    )
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "bert"
    tiny_models.build("bert").float().save_pretrained(made)
    tiny_models.tokenizer("bert").save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_check_tells_path_parity_and_what_applies(folder, run):
    code, told, errors = run("check", folder, "--json")
    assert code == 0, errors
    found = json.loads(told)
    assert (found["family"], found["attention_path"]) == ("bert", "interface")
    assert found["attention"] == "layer 1, mean over heads, first position"
    assert (found["layers"], found["heads"], found["dtype"]) == (2, tiny_models.H, "float64")
    assert found["parity"] < 1e-12
    assert found["checks"] == dict.fromkeys(found["checks"], "ok")
    assert errors == ""  # no bars, no warnings of other libraries


def test_an_audit_from_the_command_line_and_again(folder, data, tmp_path, run):
    words = ("audit", folder, data, "--out", tmp_path / "run", "--quick", "--quiet")
    code, _, errors = run(*words)
    assert code == 0, errors
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["attention_path"] == "interface"
    assert manifest["parity"] < 1e-6
    assert {"transformers", "tokenizers"} <= manifest["versions"].keys()
    before = (tmp_path / "run/verdict.json").read_bytes()
    assert run(*words)[0] == 0
    assert (tmp_path / "run/verdict.json").read_bytes() == before
    code, _, errors = run(*words, "--subject", "layer=0")
    assert code == 2
    assert "subject" in errors


def test_the_scope_is_chosen_by_name(folder):
    one = heedful.load(folder, layer=0, head=1)
    assert str(one.scope) == "layer 0, head 1, first position"
    everything = heedful.load(folder, layer="all")
    assert str(everything.scope) == "mean over layers, mean over heads, first position"
    for wrong, words in (
        ({"layer": 2}, "layers 0 to 1"),
        ({"head": 9}, "heads 0 to 3"),
        ({"position": "middle"}, "position must be"),
        ({"colour": 1}, "No model option is named 'colour'"),
        ({"dtype": "int8"}, "dtype must be"),
        ({"answers": ["yes"]}, "A classifier has its own classes"),
    ):
        with pytest.raises(ConfigError, match=words):
            heedful.load(folder, **wrong)


def test_float32_and_half_precision(folder):
    assert heedful.load(folder, dtype="float32").model.dtype == torch.float32
    half = heedful.load(tiny_models.build("bert").half(), tiny_models.tokenizer("bert"))
    assert half.model.dtype == torch.float16


def test_another_precision_or_the_last_bit_of_a_weight_is_another_fingerprint(folder):
    found = [heedful.load(folder, dtype=one) for one in ("float64", "float32", "bfloat16")]
    other = heedful.load(folder, dtype="float64")
    other.model.classifier.bias.data[0] += 1e-12
    zeros = [
        heedful.load(tiny_models.build("bert").half(), tiny_models.tokenizer("bert"))
        for _ in range(2)
    ]
    for one, dtype in zip(zeros, (torch.float16, torch.bfloat16), strict=True):
        one.model.classifier.bias.data = torch.zeros(2, dtype=dtype)  # the same bytes
    each = [one.fingerprint() for one in (*found, other, *zeros)]
    assert len(set(each)) == len(each)
    assert heedful.load(folder, dtype="float64").fingerprint() == each[0]


@pytest.mark.parametrize(
    "name", ["attention_norm", "effective_attention", "lrp", "decompx", "alti"]
)
def test_states_are_taken_apart_in_full_precision(folder, name):
    """Parts that must make up a whole do not in bfloat16, which is good to two digits."""
    found = []
    for dtype in ("float32", "bfloat16"):
        subject = heedful.load(folder, dtype=dtype)
        context = BatchContext(
            subject, subject.batch([subject.encode(Example(0, "so fine a film", 0))])
        )
        found.append(methods.build(name)(context, context.predicted).scores)
    torch.testing.assert_close(*found)


def test_bfloat16_looks_again_where_a_decision_is_near(folder):
    code = f"""
import torch, heedful
from heedful.core.values import Example
texts = ["a fine film", "not so bad , in places", "it was the best of all ."]
exact, coarse = (heedful.load({str(folder)!r}, dtype=d) for d in ("float32", "bfloat16"))
batch = exact.batch([exact.encode(Example(i, t, 0)) for i, t in enumerate(texts)])
with torch.no_grad():
    a, b = exact.forward(batch), coarse.forward(batch)
    raw = coarse.run(batch, lambda call: call.weights.clone())[0]
top = a.probabilities.topk(2).values
near = (top[:, 0] - top[:, 1]) < 0.08
far = (top[:, 0] - top[:, 1]) > 0.12
assert (a.logits[far] - b.logits[far]).abs().max() < 0.2 if far.any() else True
print(int(near.sum()), float((a.logits - raw).abs().max()) > 0,
      float((a.logits[near] - b.logits[near]).abs().sum()))
from heedful.models.batch_context import BatchContext
print(BatchContext(coarse, batch).parity < 0.05)
import heedful.models.transformer.forward as t
t.NEAR = 2.0
with torch.no_grad():
    everything = coarse.forward(batch)
print(float((a.logits - everything.logits).abs().max()))
"""
    # some virtual machines promise instructions for bfloat16 that they do not have
    env = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, env=env
    )
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first.split()[1:] == ["True", "0.0"]
    assert second == "True"
    assert float(third) < 1e-5


def test_an_encoder_without_a_head_and_a_head_without_weights(folder, tmp_path):
    tiny_models.build("bert").bert.float().save_pretrained(tmp_path / "bare")
    tiny_models.tokenizer("bert").save_pretrained(tmp_path / "bare")
    with pytest.raises(ModelError, match=r"no head for classes or tokens.*heedful train"):
        heedful.load(tmp_path / "bare")
    beheaded = tmp_path / "beheaded"
    tiny_models.build("bert").float().save_pretrained(beheaded)
    tiny_models.tokenizer("bert").save_pretrained(beheaded)
    weights = load_file(beheaded / "model.safetensors")
    weights.pop("classifier.weight")
    save_file(weights, beheaded / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"no weights for classifier\.weight.*never trained"):
        heedful.load(beheaded)


def test_what_cannot_be_loaded_is_one_line_and_exit_code_2(tmp_path, data, run):
    broken = tmp_path / "broken"
    tiny_models.build("bert").float().save_pretrained(broken)
    tiny_models.tokenizer("bert").save_pretrained(broken)
    raw = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(raw[: len(raw) // 2])
    pickled = tmp_path / "pickled"
    tiny_models.tokenizer("bert").save_pretrained(pickled)
    tiny_models.build("bert").config.save_pretrained(pickled)
    config = json.loads((pickled / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (pickled / "config.json").write_text(json.dumps(config))
    torch.save(tiny_models.build("bert").state_dict(), pickled / "pytorch_model.bin")
    for name in (broken, pickled, "nobody/nothing"):
        code, _, errors = run("audit", name, data, "--out", tmp_path / "run")
        assert code == 2
        assert len(errors.strip().splitlines()) == 1, errors
        assert str(name) in errors


def test_remote_code_is_never_run(folder, tmp_path):
    custom = tmp_path / "custom"
    tiny_models.build("bert").float().save_pretrained(custom)
    tiny_models.tokenizer("bert").save_pretrained(custom)
    config = json.loads((custom / "config.json").read_text())
    config["model_type"] = "evil"
    config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    (custom / "config.json").write_text(json.dumps(config))
    (custom / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ModelError):
        heedful.load(custom)
    assert not (tmp_path / "ran").exists()


def test_attention_that_cannot_be_reached_ends_with_2_and_says_what_to_do(tmp_path, data, run):
    out = tmp_path / "longformer"
    from transformers import LongformerConfig, LongformerForSequenceClassification

    config = LongformerConfig(
        vocab_size=tiny_tokenizers.V,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=70,
        attention_window=8,
        pad_token_id=0,
    )
    LongformerForSequenceClassification(config).save_pretrained(out)
    tiny_models.tokenizer("bert").save_pretrained(out)
    code, _, errors = run("audit", out, data, "--out", tmp_path / "run")
    assert code == 2
    assert "does not attend from every token to every token" in errors
    assert len(errors.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
    with pytest.raises(AttentionUnavailable):
        heedful.load(out)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "gpt2"
    tokenizer = tiny_tokenizers.byte_level(trim=True)
    tiny_models.build("gpt2", vocab_size=len(tokenizer)).float().save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


@pytest.mark.parametrize("command", ["audit", "explain", "check"])
def test_an_answer_of_several_tokens_ends_with_2_and_says_what_to_do(
    command, decoder, tmp_path, run
):
    rows = [{"text": "so fine a film", "label": one} for one in ("film", "g")]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {
        "audit": (data, "--out", tmp_path / "run", "--quick", "--quiet"),
        "explain": ("so fine a film", "--methods", "attention"),
        "check": (),
    }[command]
    code, _, errors = run(command, decoder, *given, "--subject", "layer=0,answers=film|good")
    assert code == 2
    assert errors == (
        "heedful: The answer 'film' has 3 tokens ('f' + 'il' + 'm'), and only the next token is "
        "predicted. Choose answers of one token each, such as ' film', which is one.\n"
    )
    assert not (tmp_path / "run").exists()


def test_a_space_in_front_of_an_answer_can_be_given_on_the_command_line(decoder, run):
    words = ("explain", decoder, "so fine a film", "--methods", "attention", "--json")
    code, told, errors = run(*words, "--subject", "layer=0, answers= film| g")
    assert code == 0, errors
    assert json.loads(told)["target"] in ("film", "g")


def test_pairs_are_read_with_their_types(tmp_path):
    subject = heedful.load(tiny_models.model("bert"), tiny_models.tokenizer("bert"))
    rows = [{"premise": "a fine film", "hypothesis": "not so bad", "label": "LABEL_0"}] * 2
    run = heedful.audit(subject, rows, checks=["agreement"], out=tmp_path / "run")
    assert run.verdict.checks["agreement"].estimates["tau_leave_one_out"].n == 2


def test_the_table_of_families_is_the_tested_one(run):
    tested = {
        tiny_models.model(name).config.model_type: one.path
        for name, one in tiny_models.FAMILIES.items()
    }
    assert (
        tested == PATH_BY_FAMILY
    )  # each is built, and proved by the tests of the seam, on its path
    refused = {tiny_models.refused(kind).config.model_type for kind in tiny_models.REFUSED}
    assert refused == REFUSED_FAMILIES.keys()
    _, told, _ = run("list", "families")
    for name in (*PATH_BY_FAMILY, *REFUSED_FAMILIES):
        assert f"\n{name} " in told


def test_a_live_model_needs_its_tokenizer_and_is_left_as_it_was():
    model = tiny_models.build("bert")
    with pytest.raises(ConfigError, match="tokenizer"):
        heedful.load(model)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    hooks = sum(len(module._forward_hooks) for module in model.modules())
    heedful.explain(
        heedful.load(model, tiny_models.tokenizer("bert")), "a fine film", method="attention"
    )
    assert model.config._attn_implementation == "sdpa"
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert sum(len(module._forward_hooks) for module in model.modules()) == hooks
    assert all(weight.requires_grad for weight in model.parameters())
