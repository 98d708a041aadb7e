"""Make subjects of transformers models from a folder, from the hub, or in memory."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.errors import AttentionUnavailable, ConfigError, ModelError
from heedful.core.values import Example
from heedful.models.attention_access.access import AttentionAccess, find_attention_access
from heedful.models.attention_access.recorder import AttentionCall
from heedful.models.attention_access.scope import Scope
from heedful.models.attention_access.supported_families import AUTO_CLASSES
from heedful.models.loading.model_folder import check_model
from heedful.models.transformer.forward import last_positions
from heedful.models.transformer.last_layer import find_first_position_only
from heedful.models.transformer.model_info import (
    answer_names,
    answer_tokens,
    detect_task,
    find_max_length,
    prefix_tokens,
    read_class_names,
    require_finite,
    require_heads,
    require_same_sizes,
    require_whole,
)
from heedful.models.transformer.quiet_loading import loading_transformers, quiet_transformers
from heedful.models.transformer.subject import TransformerSubject
from heedful.models.transformer.tokenization import SubwordTokenizer

# of unequal length, so that a lost padding mask or a wrong pooled position is detected
PROBE_TEXTS = ("a film that is so fine , and in places so very dull", "not so fine")


def load_pretrained(
    name: str | Path,
    *,
    revision: str | None = None,
    dtype: str = "auto",
    device: str = "cpu",
    **choices: Any,
) -> TransformerSubject:
    """Load a transformers folder or hub id, without running remote code or unpickling.

    `dtype` "auto" is float64 if the model runs in it, so that ranks do not depend on batching, and
    float32 otherwise; "bfloat16" recomputes near ties in float32. `choices` are passed to
    `from_model`.
    """
    wanted = torch.float32 if dtype in ("auto", "bfloat16") else _parse_dtype(dtype)
    with loading_transformers(name) as transformers:
        checked = check_model(name, revision=revision)
        config = transformers.AutoConfig.from_pretrained(name, **checked.arguments)
        auto_class = getattr(transformers, AUTO_CLASSES[detect_task(config, str(name))])
        checked.require_buildable(auto_class, config)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **checked.arguments)
        given = {**checked.arguments, "use_safetensors": True, "dtype": wanted}
        model, info = auto_class.from_pretrained(
            name, output_loading_info=True, ignore_mismatched_sizes=True, **given
        )
        require_same_sizes(info, str(name))  # which says more than transformers does
        if untrained := sorted(info["missing_keys"]):
            raise ModelError(
                f"{name} has no weights for {untrained[0]}: this part of the model was never "
                f"trained. Train it: heedful train DATA --encoder {name} --out MODEL."
            )
        require_finite(model, str(name))
        model = model.to(device).requires_grad_(False)
        if dtype != "auto":
            return from_model(model, tokenizer, bfloat16=dtype == "bfloat16", **choices)
        try:
            return from_model(model.double(), tokenizer, **choices)
        except (RuntimeError, ModelError):  # some kernels and masks do not support float64
            return from_model(model.float(), tokenizer, **choices)


def from_model(
    model: Any,
    tokenizer: Any,
    *,
    scope: Scope | None = None,
    answers: Sequence[str] = (),
    prefix: str = "",
    chat: bool = False,
    max_length: int | None = None,
    bfloat16: bool = False,
) -> TransformerSubject:
    """Make a subject of a model in memory and its tokenizer; the model is not changed.

    Args:
        model: A transformers model.
        tokenizer: Its fast tokenizer.
        scope: Which attention is audited.
        answers: Restricts a language model's output to these texts, of one token each; a space in
            front of them counts.
        prefix: What an encoder–decoder has generated before the predicted token.
        chat: Read each text as a JSON list of messages, through the chat template.
        max_length: Longest text in tokens; by default that of model and tokenizer.
        bfloat16: Compute in bfloat16, and again in full precision for near ties.
    """
    task = detect_task(model.config, type(model).__name__, (type(model).__name__,))
    model.eval()
    subword_tokenizer = SubwordTokenizer(tokenizer, max_length or find_max_length(model, tokenizer))
    if answers and task == "classification":
        raise ConfigError("A classifier has its own classes; answers are for language models.")
    if task == "next target token" and scope and scope.position in ("first", "mean"):
        raise ConfigError("An encoder–decoder is read at its last target position.")
    subject = TransformerSubject(
        model=model,
        task=task,
        access=AttentionAccess(model, "interface"),
        answers=answer_tokens(tokenizer, answers) or None,
        prefix=prefix_tokens(model, tokenizer, prefix) if task == "next target token" else (),
        bfloat16=bfloat16,
        subword_tokenizer=subword_tokenizer,
        labels=answer_names(answers) or read_class_names(model, tokenizer, task),
        scope=scope or Scope(),
        chat=chat,
    )
    return _check_and_resolve(subject)


def replace_model(subject: TransformerSubject, model: Any) -> TransformerSubject:
    """The subject with another model of the same kind, whose attention access is checked."""
    access = AttentionAccess(model, "interface")
    return _check_and_resolve(
        replace(subject, model=model, access=access, first_position_only=None)
    )


@quiet_transformers()
def _check_and_resolve(subject: TransformerSubject) -> TransformerSubject:
    """Check the attention access of the subject and resolve its scope."""
    require_whole(subject.model)
    encoded = [subject.subword_tokenizer.encode(Example(0, text, 0)) for text in PROBE_TEXTS]
    batch = subject.batch(encoded)
    with torch.no_grad():
        if not bool(subject.logits(batch).isfinite().all()):
            raise ModelError(f"{subject.family} gives logits that are not finite.")
    access = find_attention_access(subject.model, lambda: subject.logits(batch))
    subject = replace(subject, access=access)
    with torch.no_grad():
        _, recorder = subject.run(batch)
    calls = [call for call in recorder.calls if subject.is_audited(call, batch)]
    if not calls or (subject.task != "next target token" and len(calls) != len(recorder.calls)):
        shapes = sorted({tuple(call.weights.shape[2:]) for call in recorder.calls})
        raise AttentionUnavailable(
            f"{subject.family} does not attend from every token to every token (its maps are "
            f"{shapes} for {batch.ids.shape[1]} tokens); such attention is not supported. Write a "
            "heedful.Subject for it: docs/your-own-model.md shows how."
        )
    require_heads(subject.model, recorder.calls)
    scope = subject.scope.resolve(len(calls), calls[0].weights.shape[1])
    subject = replace(subject, scope=scope)
    where = _detect_position(subject, batch, calls) if scope.position == "auto" else scope.position
    if where == "end":
        padded_left = replace(subject, scope=replace(scope, position="last"), pad_left=True)
        return _check_and_resolve(padded_left)  # checked again, on texts padded on the other side
    if where == "first":
        shortcut = find_first_position_only(access, lambda: subject.logits(batch))
        subject = replace(subject, first_position_only=shortcut)
    return replace(subject, scope=replace(scope, position=where))


def _detect_position(
    subject: TransformerSubject, batch: Batch, calls: Sequence[AttentionCall]
) -> Any:
    """Detect on which rows of the last layer the output depends: "first", "last", "mean" (all).

    "end" is the last position, padded or not.
    """
    if subject.task == "next target token":
        return "last"
    nudges: list[Tensor] = []

    def nudge(call: AttentionCall) -> Tensor | None:
        if call.order != len(calls) - 1:
            return None
        nudges.append(torch.zeros_like(call.weights).requires_grad_())
        return call.weights + nudges[0]

    with torch.enable_grad():
        logits, _ = subject.run(batch, nudge)
        scale = torch.arange(1, logits.shape[-1] + 1, device=logits.device).to(logits)
        (gradient,) = torch.autograd.grad((logits * scale).sum(), nudges)
    moved = (gradient.abs().sum((1, 3)) > 0).cpu()
    place = torch.arange(moved.shape[1])
    rows_by_name = {
        "first": place == 0,
        "last": place == last_positions(batch)[:, None],
        "mean": batch.present,
        "end": place == place[-1],
    }
    for name, rows in rows_by_name.items():
        if torch.equal(moved, rows.expand_as(moved)):
            return name
    raise ConfigError(
        f"The output of {subject.family} depends on the rows of neither one position nor all; "
        "choose the position to read: Scope(position='first'), 'last' or 'mean'."
    )


def _parse_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ConfigError(
            f"dtype must be auto, float64, float32, bfloat16 or float16, not {name!r}."
        )
    return dtype
