"""What is required of a model folder before anything is built of it."""

import json
import struct
import sys

import pytest
import torch
from safetensors.torch import save_file

from heedful.core.errors import DataError, ModelError
from heedful.models.loading import bounded_process, chat_template
from heedful.models.loading.config_sizes import check_class_names, check_config
from heedful.models.loading.errors import MemoryRanOut, one_line_errors
from heedful.models.loading.files import require_inside
from heedful.models.loading.weights_header import WeightSizes, read_shapes, read_sizes
from support import tiny_models, tiny_tokenizers

SIZES = WeightSizes(count=40, numbers=10_000, largest=99)
TURNS = [{"role": "user", "content": "a fine film"}]


@pytest.mark.parametrize("name", tiny_models.FAMILIES)
def test_configs_of_all_families_pass(name, tmp_path):
    model = tiny_models.build(name)
    model.config.save_pretrained(tmp_path)
    weights = list(model.state_dict().values())
    largest = max(max(one.shape, default=1) for one in weights)
    sizes = WeightSizes(len(weights), sum(one.numel() for one in weights), largest)
    path = tmp_path / "config.json"
    check_config(json.loads(path.read_text()), path, sizes)


@pytest.mark.parametrize(
    "odd",
    [
        {"num_hidden_layers": 10**9},
        {"n_layer": 0},
        {"text_config": {"hidden_size": 2**40}},
        {"vocab_size": "99"},
        {"hidden_size": 3.5},
        {"num_attention_heads": True},
        {"max_position_embeddings": 10**7},
        {"num_local_experts": 10**6},
        {"transformers_weights": "w.safetensors"},
        {"_attn_implementation": "nobody/kernel"},
    ],
)
def test_a_config_beyond_its_weights_is_refused(odd, tmp_path):
    with pytest.raises(ModelError, match=next(iter(odd))):
        check_config(odd, tmp_path / "config.json", SIZES)


def test_rotary_positions_have_no_weights(tmp_path):
    config = {"max_position_embeddings": 10_485_760, "rope_theta": 1e9}
    check_config(config, tmp_path / "config.json", SIZES)


@pytest.mark.parametrize("names", [{"0": "a", "1": "b"}, {str(n): f"c{n}" for n in range(12)}])
def test_names_of_classes(names, tmp_path):
    check_class_names({"id2label": names}, tmp_path)
    check_class_names({}, tmp_path)


@pytest.mark.parametrize(
    "odd", [None, [], {}, {"0": "a", "01": "b"}, {"0": "a", "1": 1}, {"0": "\ud800", "1": "b"}]
)
def test_names_that_are_none(odd, tmp_path):
    with pytest.raises(ModelError, match="id2label must name the classes"):
        check_class_names({"id2label": odd}, tmp_path)


def test_a_header_is_what_safetensors_wrote(tmp_path):
    weights = {
        "a": torch.zeros(2, 3),
        "b": torch.zeros(5, dtype=torch.bfloat16),
        "c": torch.tensor(1),
    }
    save_file(weights, tmp_path / "model.safetensors")
    shapes = read_shapes(tmp_path / "model.safetensors")
    assert shapes == {name: tuple(one.shape) for name, one in weights.items()}
    assert read_sizes(tmp_path) == WeightSizes(3, 12, 5)


@pytest.mark.parametrize(
    ("kind", "shape", "span", "body", "said"),
    [
        ("F32", [2**40], [0, 8], 8, "other bytes"),
        ("F32", [-2], [0, 8], 8, "of the shape"),
        ("F32", [2], [0, 8], 9, "bytes where the file"),
        ("F32", [2], [4, 12], 12, "another place"),
        ("C64", [1], [0, 8], 8, "complex"),
        ("X", [2], [0, 8], 8, "of the type"),
        ("F32", [True, 2], [0, 8], 8, "of the shape"),
    ],
)
def test_headers_that_lie(tmp_path, kind, shape, span, body, said):
    text = json.dumps({"a": {"dtype": kind, "shape": shape, "data_offsets": span}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(body))
    with pytest.raises(ModelError, match=said):
        read_shapes(path)


def test_links_stay_in_the_folder_or_in_the_cache_of_the_hub(tmp_path):
    snapshot = tmp_path / "models--a--b/snapshots/1"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--a--b/blobs").mkdir()
    (tmp_path / "models--a--b/blobs/x").touch()
    (snapshot / "config.json").symlink_to("../../blobs/x")
    require_inside(snapshot / "config.json", snapshot)
    (snapshot / "out.json").symlink_to(tmp_path / "other.json")
    with pytest.raises(ModelError, match="not a regular file"):
        require_inside(snapshot / "out.json", snapshot)
    (tmp_path / "other.json").touch()
    with pytest.raises(ModelError, match="a link out of the folder"):
        require_inside(snapshot / "out.json", snapshot)


@pytest.mark.parametrize("error", [TypeError("a\nb"), ZeroDivisionError(), GeneratorExit()])
def test_the_net(error):
    wanted = GeneratorExit if isinstance(error, GeneratorExit) else ModelError
    with pytest.raises(wanted) as caught, one_line_errors("x cannot be loaded"):
        raise error
    assert "\n" not in str(caught.value)


def test_interrupts_and_memory_stay_what_they_are():
    with pytest.raises(KeyboardInterrupt), one_line_errors("x"):
        raise KeyboardInterrupt
    with pytest.raises(MemoryError, match="memory ran out") as caught, one_line_errors("x"):
        raise MemoryError
    assert isinstance(caught.value, MemoryRanOut)


def test_templates_are_applied_as_transformers_does():
    tokenizer = tiny_tokenizers.words()
    template = (
        "{{ cls_token }}{% for m in messages %}{{ m.role }}: {{ m.content | tojson }}\n{% endfor %}"
        "{% if add_generation_prompt %}>{% endif %}"
    )
    tokenizer.chat_template = template
    turns = [*TURNS, {"role": "x", "content": "é\ud83d", "odd": None}]
    expected = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert chat_template.apply_template(template, turns, tokenizer.special_tokens_map) == expected


def test_a_template_may_refuse_messages():
    with pytest.raises(DataError, match="refuses the messages: roles must alternate"):
        chat_template.apply_template("{{ raise_exception('roles must alternate') }}", TURNS, {})


@pytest.mark.skipif(sys.platform != "linux", reason="the bounds on memory and time are Linux's")
@pytest.mark.parametrize("template", ["{{ 'a' * 3 * 10**9 }}", "{{ (10 ** (10 ** 9)) % 7 }}"])
def test_a_template_is_stopped_and_the_next_one_works(template, monkeypatch):
    monkeypatch.setattr(chat_template, "SECONDS", 2.0)
    with pytest.raises(ModelError, match="takes more than"):
        chat_template.apply_template(template, TURNS, {})
    assert chat_template.apply_template("{{ messages | length }}", TURNS, {}) == "1"


def test_a_process_that_ends_itself_is_an_error_and_is_started_again():
    with pytest.raises(bounded_process.Failed, match=r"ended the process.*code 3"):
        bounded_process.ask("os:_exit", seconds=5.0, status=3)
    assert bounded_process.ask("os.path:join", seconds=5.0, a="x") == "x"
