"""Tiny tokenizers of several makes, and the vocabulary that the tiny models share."""

from typing import Any

import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

transformers.logging.set_verbosity_error()  # it logs, on stderr, what tiny configs lack

V = 99  # size of the vocabulary
PAD, CLS, SEP, UNK = range(4)
WORDS = "a film that is so fine , and in places very dull not good bad . it was the best of all"


def words(ends: str = "both", *, types: bool = False, **more: Any) -> Any:
    """A tokenizer of whole words; `ends` says which special tokens stand around a text."""
    known = dict.fromkeys(["[PAD]", "[CLS]", "[SEP]", "[UNK]", *WORDS.split()])
    known |= dict.fromkeys(f"w{number}" for number in range(len(known), V))
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(known)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return fast(made, ends, types=types, **more)


def wordpiece(ends: str = "both", **more: Any) -> Any:
    """A tokenizer that knows few words and spells the others from pieces, as BERT's does."""
    letters = [chr(code) for code in range(33, 127)]
    whole = ["un", "film", "was", "is", "n't", "good", "great", "the"]
    rest = [f"##{piece}" for piece in ("believ", "able", "ing", "ly", *letters)]
    known = dict.fromkeys(["[PAD]", "[CLS]", "[SEP]", "[UNK]", *whole, *letters, *rest])
    made = Tokenizer(models.WordPiece({w: i for i, w in enumerate(known)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return fast(made, ends, **more)


def byte_level(*, trim: bool, **more: Any) -> Any:
    """A tokenizer of bytes with a few merges, spaces part of the pieces, as GPT-2's is."""
    merges = [("Ġ", "f"), ("i", "l"), ("Ġf", "il"), ("Ġfil", "m"), ("o", "o"), ("Ġ", "g")]
    known = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    known += ["".join(pair) for pair in merges]
    made = Tokenizer(models.BPE({w: i for i, w in enumerate(known)}, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=trim)
    return fast(made, "kept", **more)


def fast(made: Tokenizer, ends: str, *, types: bool = False, longest: int = 60) -> Any:
    """The tokenizer as transformers has it, special tokens put where the family wants them."""
    special = [("[CLS]", CLS), ("[SEP]", SEP)]
    templates = {
        "both": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
        "after": ("$A [SEP] [CLS]:2", "$A [SEP] $B:1 [SEP]:1 [CLS]:2"),
    }
    if ends in templates:
        single, pair = templates[ends]
        made.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=special
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        **{"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"},
        model_max_length=longest,
        model_input_names=["input_ids", *["token_type_ids"] * types, "attention_mask"],
    )
