"""Transformers models from a folder, from the hub, or from memory, made into subjects."""

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
from heedful.models.transformer.first_position_only import find_first_position_only
from heedful.models.transformer.forward import last_positions
from heedful.models.transformer.model_info import (
    answer_names,
    answer_tokens,
    detect_task,
    find_max_length,
    prefix_tokens,
    read_class_names,
    require_heads,
)
from heedful.models.transformer.quiet_loading import loading_transformers, quiet_transformers
from heedful.models.transformer.subject import TransformerSubject
from heedful.models.transformer.tokenization import SubwordTokenizer

# unequal, so that a lost padding mask or a wrong pooled position shows
PROBE_TEXTS = ("a film that is so fine , and in places so very dull", "not so fine")
AUTO_CLASSES = {
    "classification": "AutoModelForSequenceClassification",
    "next token": "AutoModelForCausalLM",
    "next target token": "AutoModelForSeq2SeqLM",
}


def load_pretrained(
    name: str | Path,
    *,
    revision: str | None = None,
    dtype: str = "auto",
    device: str = "cpu",
    **choices: Any,
) -> TransformerSubject:
    """A subject from a transformers folder or a hub id; no remote code is run, nothing unpickled.

    `dtype` "auto" is float64 where the model runs in it, so that ranks do not depend on how texts
    were batched, and float32 where it does not; "bfloat16" computes in it but looks again in
    float32 where a decision is near. `choices` are those of `from_model`.
    """
    wanted = torch.float32 if dtype in ("auto", "bfloat16") else _parse_dtype(dtype)
    given = {"revision": revision} if revision else {}
    with loading_transformers(name) as transformers:
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False, **given)
        kind = getattr(transformers, AUTO_CLASSES[detect_task(config, str(name))])
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            name, trust_remote_code=False, **given
        )
        model, told = kind.from_pretrained(
            name,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=wanted,
            output_loading_info=True,
            **given,
        )
    if untrained := sorted(told["missing_keys"]):
        raise ModelError(
            f"{name} has no weights for {untrained[0]}: this part of the model was never trained. "
            f"Train it: heedful train DATA --encoder {name} --out MODEL."
        )
    model = model.to(device).requires_grad_(False)
    if dtype != "auto":
        return from_model(model, tokenizer, half=dtype == "bfloat16", **choices)
    try:
        return from_model(model.double(), tokenizer, **choices)
    except (RuntimeError, ModelError):  # some kernels know no float64, some masks do not fit it
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
    half: bool = False,
) -> TransformerSubject:
    """A subject from a live model and its tokenizer; the model is used as it is and left so.

    `answers` restricts a language model's output to these texts, of one token each; a space in
    front of them counts. `prefix` is what an encoder–decoder has written before the token in
    question; `chat` reads each text as a JSON list of messages through the chat template.
    """
    task = detect_task(model.config, type(model).__name__, (type(model).__name__,))
    model.eval()
    pieces = SubwordTokenizer(tokenizer, max_length or find_max_length(model, tokenizer))
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
        half=half,
        pieces=pieces,
        labels=answer_names(answers) or read_class_names(model, tokenizer, task),
        scope=scope or Scope(),
        chat=chat,
    )
    with quiet_transformers():
        return _prove_and_resolve(subject)


def replace_model(subject: TransformerSubject, model: Any) -> TransformerSubject:
    """The subject with another model of the same kind, whose seam is proved for itself."""
    other = replace(
        subject, model=model, access=AttentionAccess(model, "interface"), first_position_only=None
    )
    with quiet_transformers():
        return _prove_and_resolve(other)


def _prove_and_resolve(subject: TransformerSubject) -> TransformerSubject:
    """The subject with its seam proved and its scope counted out and found."""
    require_reconstruction(subject.model)
    encoded = [subject.pieces.encode(Example(0, text, 0)) for text in PROBE_TEXTS]
    batch = subject.batch(encoded)
    with torch.no_grad():
        if not bool(subject.logits(batch).isfinite().all()):
            raise ModelError(f"{subject.family} gives logits that are not finite.")
    subject = replace(
        subject, access=find_attention_access(subject.model, lambda: subject.logits(batch))
    )
    with torch.no_grad():
        _, recorder = subject.run(batch)
    calls = [call for call in recorder.calls if subject.audited(call, batch)]
    if not calls or (subject.task != "next target token" and len(calls) != len(recorder.calls)):
        shapes = sorted({tuple(call.weights.shape[2:]) for call in recorder.calls})
        raise AttentionUnavailable(
            f"{subject.family} does not attend from every token to every token (its maps are "
            f"{shapes} for {batch.ids.shape[1]} tokens); such attention is not supported. Write a "
            "heedful.Subject for it: docs/your-own-model.md shows how."
        )
    require_heads(subject.model, recorder.calls)
    scope = subject.scope.of(len(calls), calls[0].weights.shape[1])
    subject = replace(subject, scope=scope)
    where = _detect_position(subject, batch, calls) if scope.position == "auto" else scope.position
    if where == "end":
        left = replace(subject, scope=replace(scope, position="last"), left=True)
        return _prove_and_resolve(left)  # proved anew, on texts padded on the other side
    if where == "first":
        first_position_only = find_first_position_only(
            subject.access, lambda: subject.logits(batch)
        )
        subject = replace(subject, first_position_only=first_position_only)
    return replace(subject, scope=replace(scope, position=where))


def _detect_position(
    subject: TransformerSubject, batch: Batch, calls: Sequence[AttentionCall]
) -> Any:
    """Whose row of the last layer the output depends on: the first position's, the last's, all's.

    "end" is the last one, padded or not.
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
        (slope,) = torch.autograd.grad((logits * scale).sum(), nudges)
    moved = (slope.abs().sum((1, 3)) > 0).cpu()
    first, last, end = (torch.zeros_like(moved) for _ in range(3))
    first[:, 0], end[:, -1] = True, True
    last[torch.arange(len(moved)), last_positions(batch)] = True
    named = (("first", first), ("last", last), ("mean", batch.present), ("end", end))
    for name, expected in named:
        if bool((moved == expected).all()):
            return name
    raise ConfigError(
        f"The output of {subject.family} depends on the rows of neither one position nor all; say "
        "which is to be read, with Scope(position='first'), 'last' or 'mean'."
    )


def _parse_dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ConfigError(
            f"dtype must be auto, float64, float32, bfloat16 or float16, not {name!r}."
        )
    return found
