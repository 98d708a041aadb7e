"""Hostile model folders, heedful's own and transformers', made from tiny sound ones."""

import json
import os
import pickle
import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

from attacks.data_files import NO_FILES, damaged, hostile_value
from attacks.sandbox import Answer, Attempt, Place, must_be_refused, run_command
from support import subjects, tiny_models

TEXT = "a fine film that is so very good"
CHAT = json.dumps([{"role": "user", "content": "a fine film"}])
SIZES = (0, -1, 3, 10**7, 10**9, 2**63, 10**30, 0.5, 1e9, "4", None, True, [], {}, float("nan"))


@dataclass(frozen=True)
class Bases:
    """Sound folders to start from, and the data that audits read."""

    bert: Path
    gpt2: Path
    own: Path
    rows: Path

    @classmethod
    def make(cls, folder: Path) -> "Bases":
        """Write the folders, and use each once, so that all that is imported late is there."""
        from heedful.models.recurrent.model_folder import save_model

        transformers.logging.disable_progress_bar()
        bases = cls(*(folder / name for name in ("bert", "gpt2", "own", "rows.jsonl")))
        for name in ("bert", "gpt2"):
            tiny_models.build(name).float().save_pretrained(folder / name)
            tiny_models.tokenizer(name).save_pretrained(folder / name)
        save_model(subjects.subject(), bases.own)
        bases.rows.write_text("".join(json.dumps({"text": t}) + "\n" for t in (TEXT, "so bad")))
        return bases


@dataclass(frozen=True)
class Folder:
    """A copy of a sound folder, about to be spoiled."""

    path: Path
    marker: Path
    notes: list[str] = field(default_factory=list)

    def json(self, name: str) -> dict[str, Any]:
        return json.loads((self.path / name).read_text())

    def set(self, name: str, **values: Any) -> None:
        self.notes.append(f"{name} {values!r}"[:200])
        self.write(name, json.dumps(self.json(name) | values))

    def write(self, name: str, content: str | bytes) -> None:
        (self.path / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def payload(self) -> Any:
        """What makes the marker when it is unpickled."""
        return Payload(str(self.marker))

    def code(self, *names: str) -> str:
        """A module that makes the marker when it is imported, and has classes of these names."""
        classes = "".join(f"class {name}:\n    pass\n" for name in names)
        return f"import os\nos.mkdir({str(self.marker)!r})\n{classes}"


class Payload:
    """Code that runs when it is unpickled."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.marker,)


Spoil = Callable[[random.Random, Folder], bool]  # whether the folder must be refused
WEIGHTS = "model.safetensors"


def config_sizes(draw: random.Random, model: Folder) -> bool:
    """A size in the config that the weights do not have, or no machine."""
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
    more = ("intermediate_size", "max_position_embeddings", "type_vocab_size", "pad_token_id")
    gpt = {"num_hidden_layers": "n_layer", "hidden_size": "n_embd", "num_attention_heads": "n_head"}
    name, value = draw.choice((*names, *names, *more)), draw.choice(SIZES)
    gpt |= {"intermediate_size": "n_inner", "max_position_embeddings": "n_positions"}
    own = gpt.get(name, name) if "n_layer" in model.json("config.json") else name
    model.set("config.json", **{own: value})
    plain = isinstance(value, int) and not isinstance(value, bool)
    return name in names[:3] and plain and value not in (1, 2, 3, 4)


def config_values(draw: random.Random, model: Folder) -> bool:
    """Any keys of the config with any values."""
    known = model.json("config.json")
    more = ("quantization_config", "attn_implementation", "torch_dtype", "pruned_heads", "_name")
    odd = (*SIZES, "cuda", "../x", "gelu", ["x"], {"a": 1}, "eager", "float8_e4m3fn", "a" * 10**5)
    names = draw.sample((*known, *more), k=draw.randint(1, 3))
    values = [hostile_value(draw) if draw.random() < 0.4 else draw.choice(odd) for _ in names]
    model.set("config.json", **dict(zip(names, values, strict=True)))
    return False


def class_names(draw: random.Random, model: Folder) -> bool:
    """Names of classes that are missing, doubled, or too many."""
    odd: list[dict[str, Any]] = [
        {"id2label": None, "num_labels": None},
        {"id2label": {"0": "a", "2": "b"}, "label2id": {"a": 0, "b": 2}},
        {"id2label": {"0": "same", "1": "same"}, "label2id": {"same": 0}},
        {"id2label": {"0": "a", "x": "b"}},
        {"id2label": ["a", "b"]},
        {"id2label": "ab"},
        {"id2label": {"0": None, "1": {}}},
        {"id2label": {str(n): f"c{n}" for n in range(200_000)}},
        {"num_labels": 10**7},
        {"num_labels": -1},
        {"num_labels": "2"},
        {"id2label": {"0": "\ud800", "1": "b"}},
    ]
    model.set("config.json", **draw.choice(odd))
    return "BertForSequenceClassification" in model.json("config.json")["architectures"]


def weights_values(draw: random.Random, model: Folder) -> bool:
    """Weights that are not finite, or of a type that no weight has."""
    weights = load_file(model.path / WEIGHTS)
    name = draw.choice(sorted(weights))
    one = weights[name]
    kind = draw.randrange(6)
    model.notes.append(
        f"{name}, {('not finite', 'complex', 'integer', 'cut', 'huge', 'renamed')[kind]}"
    )
    if kind == 0:
        one.view(-1)[0] = draw.choice((float("nan"), float("inf"), -float("inf")))
    elif kind == 1:
        one = one.to(torch.complex64)
    elif kind == 2:
        one = one.to(draw.choice((torch.int64, torch.bool, torch.uint8)))
    elif kind == 3:
        one = one.flatten()[: max(1, one.numel() // 2)].clone()
    elif kind == 4:
        one = torch.full_like(one, 1e38)
    weights[name] = one
    if kind == 5:
        weights[f"{name}.odd"] = weights.pop(name)
    save_file(weights, model.path / WEIGHTS, metadata={"format": "pt"})
    return kind in (0, 1, 3)


def header_lies(draw: random.Random, model: Folder) -> bool:
    """A header of safetensors that says what is not so."""
    raw = (model.path / WEIGHTS).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header, body = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    name = draw.choice([one for one in header if one != "__metadata__"])
    one, kind = header[name], draw.randrange(9)
    model.notes.append(f"{name}, lie {kind}")
    if kind == 0:
        one["shape"] = draw.choice(([2**40, 2**40], [-1, 4], [0], [2**63], ["4"], None, [1e3]))
    elif kind == 1:
        start, end = one["data_offsets"]
        one["data_offsets"] = draw.choice(([end, start], [start, end + 8], [0, 2**62], [-8, 8]))
    elif kind == 2:
        one["dtype"] = draw.choice(("C64", "F4", "X", None, 7, "F64", "I64"))
    elif kind == 3:
        header["__metadata__"] = draw.choice(({"format": "tf"}, {"format": 7}, None, {"a": "b"}))
    elif kind == 4:
        header |= {f"more.{n}": one for n in range(200_000)}
    elif kind == 5:
        header[name] = draw.choice((None, [], {}, hostile_value(draw)))
    text = json.dumps(header).encode()
    if kind == 6:
        text = b"[" * 100_000 + text
    length = len(text) if kind != 7 else draw.choice((0, 2**63, 2**64 - 1, len(text) * 2, 2**31))
    body = body if kind != 8 else draw.choice((b"", body[:-1], body + b"x", bytes(len(body))))
    model.write(WEIGHTS, struct.pack("<Q", length) + text + body)
    return kind in (0, 1, 4, 6, 7)


def index_escapes(draw: random.Random, model: Folder) -> bool:
    """An index of weights that names a pickle, or a file outside of the folder."""
    names = load_file(model.path / WEIGHTS)
    outside = model.path.parent / "outside.safetensors"
    (model.path / WEIGHTS).rename(outside)
    torch.save(model.payload(), model.path / "w.bin")
    (model.path / "linked.safetensors").symlink_to(outside)
    (model.path / "sub").mkdir()
    shutil.copy(outside, model.path / "sub/x.safetensors")
    target = draw.choice(
        (
            *("w.bin", "../outside.safetensors", str(outside), "sub/../../outside.safetensors"),
            *(
                "w.bin",
                "linked.safetensors/",
                "sub/x.safetensors",
                "",
                ".",
                "..",
                "\0",
                "/dev/zero",
            ),
        )
    )
    model.notes.append(repr(target))
    odd = hostile_value(draw)
    weight_map = draw.choice((dict.fromkeys(names, target),) * 8 + (None, odd))
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    model.write("model.safetensors.index.json", json.dumps(index))
    return True


def pickles(draw: random.Random, model: Folder) -> bool:
    """Pickles under the names of weights."""
    kind = draw.randrange(5)
    path = model.path / draw.choice((WEIGHTS, "pytorch_model.bin"))
    model.notes.append(f"{path.name}, pickle {kind}")
    (model.path / WEIGHTS).unlink()
    if kind == 0:
        path.write_bytes(pickle.dumps(model.payload()))
    elif kind == 1:
        torch.save(model.payload(), path)
    elif kind == 2:
        torch.save({"a": model.payload()}, path, _use_new_zipfile_serialization=False)
    elif kind == 3:
        torch.save(model.payload(), model.path / "pytorch_model-00001-of-00001.bin")
        index = {"metadata": {}, "weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}
        model.write("pytorch_model.bin.index.json", json.dumps(index))
    else:
        torch.save({"bert.embeddings.word_embeddings.weight": torch.zeros(99, 32)}, path)
    return True


def remote_code(draw: random.Random, model: Folder) -> bool:
    """Modules that lie in the folder and are named in its config."""
    names = ("EvilConfig", "EvilModel", "EvilTokenizer")
    model.write("evil.py", model.code(*names))
    mapping: dict[str, Any] = {"AutoConfig": "evil.EvilConfig"}
    mapping["AutoModelForSequenceClassification"] = "evil.EvilModel"
    mapping["AutoModelForCausalLM"] = "evil.EvilModel"
    mapping["AutoTokenizer"] = ["evil.EvilTokenizer", "evil.EvilTokenizer"]
    known = draw.random() < 0.5
    kind = model.json("config.json")["model_type"] if known else "evil"
    model.set("config.json", auto_map=mapping, model_type=kind, trust_remote_code=True)
    tokenizer = {"auto_map": mapping, "trust_remote_code": True}
    if draw.random() < 0.5:
        tokenizer["tokenizer_class"] = "EvilTokenizer"
    model.set("tokenizer_config.json", **tokenizer)
    for name in ("__init__.py", "custom_generate/generate.py", "sitecustomize.py", "torch.py"):
        (model.path / name).parent.mkdir(exist_ok=True)
        model.write(name, model.code())
    return not known


SPOILED_TOKENIZERS = (
    *("vocabulary", "normaliser that doubles", "normaliser that prepends", "regex of words"),
    *("regex of normaliser", "added tokens", "post-processor"),
)


def tokenizer_sizes(draw: random.Random, model: Folder) -> bool:
    """A tokenizer that grows beyond all bounds, or never ends."""
    known = model.json("tokenizer.json")
    doubling = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    kind = draw.randrange(7)
    model.notes.append(SPOILED_TOKENIZERS[kind])
    if kind == 0:
        many = draw.choice((200_000, 2_000_000))
        known["model"]["vocab"] |= {f"x{number}": 99 + number for number in range(many)}
    elif kind == 1:
        many = draw.choice((20, 40))
        known["normalizer"] = {"type": "Sequence", "normalizers": [doubling] * many}
    elif kind == 2:
        known["normalizer"] = {"type": "Prepend", "prepend": "a" * 10**7}
    elif kind == 3:
        pattern = draw.choice(
            (r"([a-z ]+)+!", r"(a|aa|\w\s?)+$^", r"(.*)*\1\1\1!", r"(\w+\s*){99}!")
        )
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
        known["pre_tokenizer"] = split | {"invert": False}
    elif kind == 4:
        regex = {"type": "Replace", "pattern": {"Regex": r"([a-z ]+)+!"}, "content": "x"}
        known["normalizer"] = regex
    elif kind == 5:
        one = known["added_tokens"][0]
        known["added_tokens"] = [one | {"id": 10**9 + n, "content": f"w{n}"} for n in range(9)]
    else:
        tokens = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * 300_000
        known["post_processor"] = {
            **{"type": "TemplateProcessing", "pair": [], "single": tokens},
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}},
        }
    model.write("tokenizer.json", json.dumps(known))
    return kind == 6


def tokenizer_values(draw: random.Random, model: Folder) -> bool:
    """Any part of a tokenizer replaced by anything else."""
    name = draw.choice(("tokenizer.json", "tokenizer_config.json"))
    known = model.json(name)
    odd: dict[str, Any] = {
        "model_max_length": draw.choice(SIZES),
        "tokenizer_class": draw.choice(("BertTokenizer", "eval", "../x", 7, "PreTrainedTokenizer")),
        "added_tokens_decoder": {"5": draw.choice((None, {"content": "x"}, "y"))},
        "unk_token": draw.choice((None, "nope", {"__type": "AddedToken"}, 7)),
        "tokenizer_file": "../../etc/passwd",
        "extra_special_tokens": hostile_value(draw),
    }
    if name == "tokenizer_config.json" and draw.random() < 0.7:
        key = draw.choice(tuple(odd))
        known[key] = odd[key]
    else:
        inner = known["model"] if "model" in known and draw.random() < 0.5 else known
        inner[draw.choice(tuple(inner))] = hostile_value(draw)
    if name == "tokenizer.json" and draw.random() < 0.3:
        known["model"]["vocab"] = draw.choice(({}, {"a": -1}, {"a": 2**40}, {"a": 0, "b": 0}))
    model.write(name, json.dumps(known))
    return False


TEMPLATES = (
    "{% for i in range(10**9) %}x{% endfor %}",
    "{% for i in range(10**5) %}{% for j in range(10**5) %}{% endfor %}{% endfor %}",
    "{{ 'a' * 10**10 }}",
    "{{ 'a' * 3000000000 }}",
    "{{ range(10**12) | list }}",
    "{{ messages.__class__.__mro__[-1].__subclasses__() }}",
    "{{ ''.__class__ }}",
    "{{ cycler.__init__.__globals__.os.mkdir(MARKER) }}",
    "{{ self.__init__.__globals__ }}",
    "{{ raise_exception('a\nb\nc') }}",
    "{{ nobody.has.this }}",
    "{{ messages[7]['content'] }}",
    "{{ 1 // 0 }}",
    "{% for m in messages %}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os }}",
    "{{ 10 ** 10 ** 9 }}",
    "{{ messages | tojson(indent=10**9) }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ '%1000000000s' % 'a' }}",
    "{{ '{:>1000000000}'.format('a') }}",
    "{{ ('a' * 30 ~ 'b') | wordwrap(1) * 10**8 }}",
    "{{ messages | map(attribute='__class__') | list }}",
    "\ud800",
    "{{ 'x' }}" * 100_000,
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
)


def chat_templates(draw: random.Random, model: Folder) -> bool:
    """Chat templates that loop, grow, look around or fail; none of them shows the message."""
    template: Any = draw.choice(TEMPLATES).replace("MARKER", repr(str(model.marker)))
    if draw.random() < 0.1:
        template = draw.choice((7, [], {"a": "b"}, [{"name": "default", "template": template}]))
    model.set("tokenizer_config.json", chat_template=template)
    return True


def files_spoiled(draw: random.Random, model: Folder) -> bool:
    """A file of the folder, damaged or replaced by what is no file."""
    files = sorted(one for one in model.path.iterdir() if one.is_file())
    path = draw.choice(files)
    model.notes.append(path.name)
    if draw.random() < 0.6:
        path.write_bytes(damaged(path.read_bytes(), draw))
        return False
    path.unlink()
    what = draw.choice(tuple(NO_FILES))
    model.notes.append(what)
    NO_FILES[what](path)
    needed = ("config.json", WEIGHTS, "heedful.json", "vocabulary.json", "tokenizer.json")
    return path.name in needed


def json_spoiled(draw: random.Random, model: Folder) -> bool:
    """JSON that is nested deeply, has a key twice, or is blown up with spaces."""
    files = sorted(one.name for one in model.path.glob("*.json"))
    name, kind = draw.choice(files), draw.randrange(4)
    model.notes.append(f"{name}, {('deep', 'a key twice', 'spaces', 'a deep value')[kind]}")
    text = (model.path / name).read_text()
    if kind == 0:
        text = '{"a":' * 200_000
    elif kind == 1 and text.startswith("{"):
        text = '{"hidden_size": 7, "labels": 3,' + text[1:]
    elif kind == 2:
        text = " " * 50_000_000 + text
    elif text.startswith("{"):
        text = '{"odd": ' + "[" * 900 + "]" * 900 + "," + text[1:]
    model.write(name, text)
    return False


TRANSFORMERS: dict[Spoil, int] = {
    **dict.fromkeys((config_sizes, config_values, tokenizer_sizes, tokenizer_values), 3),
    **dict.fromkeys((class_names, weights_values, header_lies, index_escapes, chat_templates), 2),
    **dict.fromkeys((pickles, remote_code, files_spoiled, json_spoiled), 1),
}


def own_shape(draw: random.Random, model: Folder) -> bool:
    """Sizes of our own network that its weights do not have."""
    settings = model.json("heedful.json")
    name = draw.choice(tuple(settings["shape"]))
    value = draw.choice(SIZES)
    settings["shape"][name] = value
    model.notes.append(f"{name}={value!r}")
    model.write("heedful.json", json.dumps(settings))
    return isinstance(value, int) and not isinstance(value, bool)


def own_settings(draw: random.Random, model: Folder) -> bool:
    """Any of our settings with any value."""
    settings = model.json("heedful.json")
    name = draw.choice(tuple(settings))
    settings[name] = hostile_value(draw)
    if draw.random() < 0.3:
        odd = (["same", "same"], [], ["a"], ["a", "b", "c"], [None, 1], "ab", [["x"], {}])
        settings["labels"] = draw.choice(odd)
    model.notes.append(f"{name}={settings[name]!r}, labels={settings['labels']!r}"[:200])
    doubled = settings["labels"] == ["same", "same"]
    model.write("heedful.json", json.dumps(settings))
    return doubled


def own_vocabulary(draw: random.Random, model: Folder) -> bool:
    """A vocabulary of any words."""
    words = json.loads((model.path / "vocabulary.json").read_text())
    at, kind = draw.randrange(len(words)), draw.randrange(6)
    if kind == 0:
        words[at] = hostile_value(draw)
    elif kind == 1:
        words[at] = words[at - 1]
    elif kind == 2:
        words = [*words, *map(str, range(2_000_000))]
    elif kind == 3:
        words = draw.choice(([], words[:-1], {}, words[::-1]))
    elif kind == 4:
        words[at] = "w" * 10**7
    else:
        words[at] = draw.choice(("\ud800", "\0", "", " ", None))
    model.notes.append(f"kind {kind}")
    model.write("vocabulary.json", json.dumps(words))
    return kind == 2


OWN: dict[Spoil, int] = {
    **dict.fromkeys((own_shape, own_settings, own_vocabulary), 3),
    **dict.fromkeys((weights_values, header_lies), 2),
    **dict.fromkeys((files_spoiled, json_spoiled), 1),
}
# where the weights are another number of the same type, the model is another one, and no worse
CHATS = (chat_templates,)
LANGUAGE = "gpt2"


def draw_model(bases: Bases) -> Callable[[random.Random, Place], Attempt]:
    """Any hostile folder, under one of the commands that load a model."""

    def draw_one(draw: random.Random, place: Place) -> Attempt:
        base = draw.choice((bases.bert, bases.bert, bases.gpt2, bases.own))
        kinds = OWN if base == bases.own else TRANSFORMERS
        spoil = draw.choices(tuple(kinds), tuple(kinds.values()))[0]
        if spoil in CHATS:
            base = bases.gpt2
        model = Folder(place.folder / "model", place.marker)
        shutil.copytree(base, model.path)
        refused = spoil(draw, model)
        words = _command(draw, model.path, bases, chat=spoil in CHATS)
        what = f"{base.name}, {spoil.__name__} {' '.join(model.notes)}: {words[0]}"

        def wrong(answer: Answer) -> str:
            return must_be_refused(answer) if refused else _wrong(answer, words)

        return Attempt(what, lambda: run_command(*words), wrong)

    return draw_one


def _command(draw: random.Random, model: Path, bases: Bases, *, chat: bool) -> list[str]:
    """One of the commands that load a model; most often the fastest."""
    if chat:
        return ["explain", str(model), CHAT, "--subject", "chat=true", "--json", *_FEW]
    kind = draw.random()
    if kind < 0.7:
        return ["explain", str(model), TEXT, "--json", *_FEW]
    if kind < 0.78:
        return ["check", str(model), "--json"]
    if kind < 0.9:
        data = ["--data", str(bases.rows), "--out", "scores.parquet"]
        return ["explain", str(model), *data, *_FEW, "--quiet"]
    return ["train", str(bases.rows), "--encoder", str(model), "--out", "made", "--quiet"]


_FEW = ["--methods", "attention"]


def _wrong(answer: Answer, words: list[str]) -> str:
    """What is wrong with the answer of a command that was done."""
    if "--json" not in words:
        return ""
    try:
        found = json.loads(answer.out, parse_constant=_no_number)
    except ValueError as error:
        return f"no JSON ({error}): {answer.out[:200]!r}"
    return "" if found else "an empty answer"


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
