"""What model and tokenizer say about themselves: task, classes, answer tokens, longest text."""

from collections.abc import Sequence
from typing import Any

from heedful.core.errors import ConfigError, ModelError
from heedful.models.transformer.forward import Task

TASK_BY_SUFFIX: dict[str, Task] = {
    "ForSequenceClassification": "classification",
    "ForCausalLM": "next token",
    "LMHeadModel": "next token",
    "ForConditionalGeneration": "next target token",
    "MTModel": "next target token",
}
NO_LENGTH_LIMIT = 1_000_000  # tokenizers without a limit state 10³⁰


def detect_task(config: Any, name: str, architectures: Sequence[str] = ()) -> Task:
    """The task of a model by its architecture names; raise ModelError for unsupported heads."""
    for architecture in architectures or config.architectures or ():
        for ending, task in TASK_BY_SUFFIX.items():
            if architecture.endswith(ending):
                if config.is_encoder_decoder and task == "classification":
                    raise ModelError(f"{name}: encoder–decoder classifiers are not supported.")
                return task
    raise ModelError(
        f"{name} has no head for classes or tokens (it is {config.architectures}). Train a "
        f"classifier on it: heedful train DATA --encoder {name} --out MODEL."
    )


def read_class_names(model: Any, tokenizer: Any, task: Task) -> tuple[str, ...]:
    """The names of the classes: labels of a classifier, tokens of a vocabulary."""
    if task != "classification":
        count = model.config.get_text_config().vocab_size
        names = tokenizer.convert_ids_to_tokens(range(min(count, len(tokenizer))))
        more = (f"<token {number}>" for number in range(len(names), count))
        return (*(_token_name(number, one) for number, one in enumerate(names)), *more)
    config = model.config
    if config.num_labels < 2 or config.problem_type in ("regression", "multi_label_classification"):
        raise ModelError("The model gives no distribution over classes (regression, multi-label).")
    return tuple(str(config.id2label[number]) for number in range(config.num_labels))


def _token_name(number: int, token: str | None) -> str:
    return f"<token {number}>" if token is None else token


def answer_token(tokenizer: Any, text: str) -> int:
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if not ids:
        raise ConfigError(f"The answer {text!r} has no token.")
    return int(ids[0])


def prefix_tokens(model: Any, tokenizer: Any, text: str) -> tuple[int, ...]:
    """The start token of the decoder and the tokens of a prefix."""
    start = model.config.decoder_start_token_id
    if start is None:
        raise ModelError("The config of the model has no decoder_start_token_id.")
    written = tokenizer(text_target=text, add_special_tokens=False)["input_ids"] if text else []
    return (int(start), *map(int, written))


def find_max_length(model: Any, tokenizer: Any) -> int:
    """The longest text in tokens that model and tokenizer allow; 1024 if they set no limit."""
    known = [tokenizer.model_max_length]
    config = model.config.get_text_config()
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions > 0:
        offset = 0
        for name, module in model.named_modules():
            if name.endswith("position_embeddings") and getattr(module, "padding_idx", None):
                offset = module.padding_idx + 1  # RoBERTa's positions start after the padding id
        known.append(positions - offset)
    longest = min(known)
    return 1024 if longest > NO_LENGTH_LIMIT else int(longest)
