"""What model and tokenizer state: task, classes, answer tokens, longest text, heads."""

import sys
from collections.abc import Sequence
from typing import Any

from heedful.core.errors import AttentionUnavailable, ConfigError, ModelError
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.attention_access.supported_families import HEAD_COUNTS, TASK_BY_SUFFIX, Task

SPLIT_MARKS = ("_device_mesh", "_hf_device_mesh", "_hf_tp_plan")  # not None once a plan is applied
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
        names += [None] * (count - len(names))
        return tuple(f"<token {n}>" if name is None else name for n, name in enumerate(names))
    config = model.config
    if config.num_labels < 2 or config.problem_type in ("regression", "multi_label_classification"):
        raise ModelError("The model gives no distribution over classes (regression, multi-label).")
    return tuple(str(config.id2label[number]) for number in range(config.num_labels))


def answer_tokens(tokenizer: Any, answers: Sequence[str]) -> tuple[int, ...]:
    """The one token of each answer; no two answers have the same."""
    chosen = tuple(answer_token(tokenizer, one) for one in answers)
    if len(set(chosen)) != len(chosen):
        raise ConfigError(f"Two of the answers {tuple(answers)} are the same token.")
    return chosen


def answer_token(tokenizer: Any, text: str) -> int:
    """The token that an answer is; one of several tokens is refused, not cut to its first."""
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if not ids:
        raise ConfigError(f"The answer {text!r} has no token.")
    if len(ids) > 1:
        pieces = " + ".join(map(repr, tokenizer.convert_ids_to_tokens(ids)))
        other = text.lstrip() if text.startswith(" ") else f" {text}"
        advice = "with or without a space in front as the tokenizer wants them."
        if len(tokenizer(other, add_special_tokens=False)["input_ids"]) == 1:
            advice = f"such as {other!r}, which is one."
        raise ConfigError(
            f"The answer {text!r} has {len(ids)} tokens ({pieces}), and only the next token is "
            f"predicted. Choose answers of one token each, {advice}"
        )
    if ids[0] == tokenizer.unk_token_id and text.strip() != tokenizer.unk_token:
        raise ConfigError(f"The answer {text!r} is unknown to the tokenizer; choose another word.")
    return int(ids[0])


def answer_names(answers: Sequence[str]) -> tuple[str, ...]:
    """What the answers are called in data and reports: without the space in front of them."""
    names = tuple(one.strip() for one in answers)
    return names if len(set(names)) == len(names) else tuple(answers)


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


def require_whole(model: Any) -> None:
    """Refuse a model whose weights are split over several processes: each sees a part of the heads.

    A `_tp_plan` alone says how a model could be split; ordinary models have one.
    """
    if (size := getattr(model, "_tp_size", None) or 1) > 1:
        raise _split(model, f"its tensor-parallel size is {size}")
    for name, module in model.named_modules():
        if any(getattr(module, one, None) is not None for one in SPLIT_MARKS):
            raise _split(model, f"a parallel plan is applied to {name or 'it'}")
    # never imported here: where a weight is a DTensor, its module is loaded
    kind = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
    for name, weight in (*model.named_parameters(), *model.named_buffers()):
        if kind is not None and isinstance(weight, kind):
            raise _split(model, f"{name} is a DTensor")


def require_same_sizes(info: dict[str, Any], name: str) -> None:
    """Refuse weights of other sizes than the config says."""
    for weight, found, wanted in sorted(info["mismatched_keys"], key=str)[:1]:
        raise ModelError(
            f"{name}: {weight} has the shape {tuple(found)}, where config.json describes "
            f"{tuple(wanted)}. Its config and its weights do not belong together."
        )


def require_finite(model: Any, name: str) -> None:
    """Refuse weights that are NaN or infinite, as the file has them."""
    for weight, values in model.named_parameters():
        if not bool(values.isfinite().all()):
            raise ModelError(
                f"{name}: {weight} holds values that are not finite (NaN or infinite). Save the "
                "model from before it diverged."
            )


def require_heads(model: Any, calls: Sequence[AttentionCall]) -> None:
    """Refuse attention with fewer heads than the config says; keys may be shared by queries."""
    config = model.config.get_text_config()
    known = [one for name in HEAD_COUNTS if isinstance(one := getattr(config, name, None), int)]
    least = min(known, default=0)
    for call in calls:
        if (seen := call.weights.shape[1]) < least:
            raise AttentionUnavailable(
                f"{call.module} attends with {seen} heads where the config of "
                f"{type(model).__name__} says {least}. If the model is split by tensor "
                "parallelism, load it whole, in one process; if its layers have fewer heads, write "
                "a heedful.Subject for it: docs/your-own-model.md shows how."
            )


def _split(model: Any, why: str) -> AttentionUnavailable:
    return AttentionUnavailable(
        f"This process holds only a part of {type(model).__name__}: {why}. Attention would be read "
        "from some of its heads. Load the whole model in one process, without tp_plan and "
        "distributed_config."
    )
