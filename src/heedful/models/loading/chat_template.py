"""Chat templates, applied in a bounded process."""

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.core.errors import DataError, ModelError
from heedful.models.loading.bounded_process import Failed, ask

SECONDS = 5.0  # of the processor for one chat; honest templates take milliseconds
MOST_SIGNS = 10_000_000  # of a chat, after its template
REFUSED = "TemplateError"  # raised by `raise_exception`: the template refuses the messages


def apply_template(
    template: object, turns: Sequence[Mapping[str, Any]], special_tokens: Mapping[str, Any]
) -> str:
    """The text of a chat.

    Whatever the template is, this ends: within 5 seconds of the processor, 1 GiB of memory and ten
    million signs, by the text or by one clear error.
    """
    if not isinstance(template, str):
        raise ModelError(
            f"The chat template is no text but {type(template).__name__}: mend chat_template in "
            "tokenizer_config.json."
        )
    tokens = {name: str(token) for name, token in special_tokens.items()}
    try:
        text: str = ask(
            f"{__name__}:render", seconds=SECONDS, template=template, turns=turns, tokens=tokens
        )
    except Failed as error:
        if error.kind == REFUSED:
            raise DataError(f"The chat template refuses the messages: {error}.") from error
        kind = f"{error.kind}: " if error.kind else ""
        raise ModelError(
            f"The chat template cannot be applied to the messages: {kind}{error}. Mend it, or use "
            "texts without chat=true."
        ) from error
    return text


def render(template: str, turns: list[dict[str, Any]], tokens: dict[str, str]) -> str:
    """What transformers makes of the template; runs in the bounded process."""
    from transformers.utils.chat_template_utils import render_jinja_template

    # as apply_chat_template does: templates take a missing key for one without a value
    chat = [{name: one for name, one in turn.items() if one is not None} for turn in turns]
    found: Any = render_jinja_template([chat], None, None, template, False, False, True, **tokens)
    text: str = found[0][0]  # beside the text of each chat it gives the places of answers
    if len(text) > MOST_SIGNS:
        raise ValueError(f"its text has {len(text):,} signs; it may have {MOST_SIGNS:,}")
    return text
