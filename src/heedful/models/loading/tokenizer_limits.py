"""A tokenizer that can be trusted with a text: bounded in size, and tried before it is loaded.

The libraries that tokenize are not Python: what runs away in them ends the whole process. So the
file is looked at as plain JSON first, then tried on a few texts in a bounded process.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.core.errors import ModelError
from heedful.models.loading.bounded_process import Failed, ask
from heedful.models.loading.errors import shown
from heedful.models.loading.files import read_json_object
from heedful.models.loading.weights_header import WeightSizes

TOKENIZER_FILE = "tokenizer.json"
MORE_TOKENS = 10_000  # tokens without a vector, such as those of images: the text must not use them
MOST_STEPS = 10_000  # values in all steps before and after the model
MOST_SIGNS = 2_000_000  # in all texts of these steps, such as a table of characters
MOST_GROWTH = 1_000  # of a text, by what its parts are replaced with
SECONDS = 20.0  # of the processor to read and try a tokenizer; the largest take two
TOKENS_PER_SIGN, MORE = 16, 1_000
TRIED = (
    "a film that is so fine , and in places so very dull",
    "The quick brown fox jumps over the lazy dog, 1234567890 times! It isn't: (really) \t\n no?",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 11111111111111111!",
)


def check_tokenizer(folder: Path, sizes: WeightSizes) -> None:
    """Refuse a tokenizer.json that is larger than the model, grows texts or fails on them."""
    path = folder / TOKENIZER_FILE
    if not path.exists():
        return  # of other files transformers makes a tokenizer without steps of their own
    found = read_json_object(path)
    _check_vocabulary(found, path, sizes)
    _check_steps({name: one for name, one in found.items() if name not in _TOKENS}, path)
    try:
        ask(f"{__name__}:try_tokenizer", seconds=SECONDS, path=str(path.absolute()))
    except Failed as error:
        raise ModelError(
            f"{shown(path)} is no tokenizer that reads a short text: {error}. Save or download it "
            "again."
        ) from error


_TOKENS = ("model", "added_tokens")


def _check_vocabulary(found: Mapping[str, Any], path: Path, sizes: WeightSizes) -> None:
    model = found.get("model")
    parts = (model.get("vocab") if isinstance(model, dict) else None, found.get("added_tokens"))
    count = sum(len(one) for one in parts if isinstance(one, (dict, list)))
    if count > (most := sizes.largest + MORE_TOKENS):
        raise ModelError(
            f"{shown(path)} has {count:,} tokens; the largest dimension of the weights is "
            f"{sizes.largest:,}, so that it may have {most:,}. They do not belong together."
        )


def _check_steps(steps: Mapping[str, Any], path: Path) -> None:
    values = list(_inner(steps))
    signs = sum(len(one) for one in values if isinstance(one, str))
    if len(values) > MOST_STEPS or signs > MOST_SIGNS:
        raise ModelError(
            f"{shown(path)} describes its steps by {len(values):,} values of {signs:,} signs; "
            f"they may have {MOST_STEPS:,} and {MOST_SIGNS:,}."
        )
    growth = 1.0
    for one in values:
        if isinstance(one, dict) and isinstance(content := one.get("content"), str):
            pattern = one.get("pattern")
            literal = pattern.get("String") if isinstance(pattern, dict) else None
            growth *= max(1.0, len(content) / max(1, len(literal or "")))
    if growth > MOST_GROWTH:
        raise ModelError(
            f"{shown(path)} replaces parts of a text until it is {growth:.0g} times as long; "
            f"{MOST_GROWTH:,} times is the most."
        )


def _inner(value: Any) -> Iterator[Any]:
    """All values in a JSON value, keys of objects included."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one


def try_tokenizer(path: str) -> None:
    """Read and try a tokenizer. Runs in the bounded process."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    for text in TRIED:
        found = len(tokenizer.encode(text).ids)
        if found > (most := TOKENS_PER_SIGN * len(text) + MORE):
            raise ValueError(f"{found:,} tokens for {len(text)} signs, where {most:,} is the most")
