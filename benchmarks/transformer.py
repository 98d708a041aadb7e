"""`python -m benchmarks.transformer`: reading attention out of a transformer.

CPU seconds on one thread, float32, MiniLM's size (6 layers, 12 heads, 384 wide) with random
weights, texts of about 20 and 180 tokens. *extraction*: logits and all attentions of 500 texts
(60 long ones) against the natural loop, one text per call with `output_attentions=True` and eager
attention. *overhead*: one batch through the seam against the same batch by plain eager. *memory*:
peak of a process that reads the attentions of 200 and of 2 000 texts.
"""

import argparse
import platform
import statistics
import time
from datetime import date

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import heedful
from benchmarks.peak import measured_peak, own_peak
from heedful.core.values import Example
from heedful.data.batching import batches

WORDS = [f"w{number}" for number in range(2000)]
TOKENS = 1_024  # at once, as audits take them


def subject():
    """A BERT classifier of MiniLM's size."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=2004,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    model = BertForSequenceClassification(config).eval().requires_grad_(False)
    names = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *WORDS]
    words = Tokenizer(
        models.WordLevel({name: n for n, name in enumerate(names)}, unk_token="[UNK]")
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", model_max_length=512
    )
    return heedful.load(model, tokenizer)


def texts(length, count):
    """Texts about as long as asked."""
    draw = torch.Generator().manual_seed(1)
    lengths = (length * (0.6 + 0.8 * torch.rand(count, generator=draw))).long()
    return [
        " ".join(WORDS[w] for w in torch.randint(0, 2000, (n,), generator=draw).tolist())
        for n in lengths.tolist()
    ]


def ours(one, some):
    """Logits and all attentions, in flat batches of like length."""
    encoded = [one.encode(Example(number, text, 0)) for number, text in enumerate(some)]
    read = 0
    with torch.no_grad():
        for rows in batches(encoded, max_batch_tokens=TOKENS):
            read += sum(
                map_.numel() for map_ in one.forward(one.batch([encoded[r] for r in rows])).maps
            )
    return read


def natural(one, some):
    """One text per call, as the documentation of transformers shows it."""
    read = 0
    one.model.set_attn_implementation("eager")
    with torch.no_grad():
        for text in some:
            inputs = one.subword_tokenizer.tokenizer(text, return_tensors="pt")
            output = one.model(**inputs, output_attentions=True)
            read += sum(map_.numel() for map_ in output.attentions)
    one.model.set_attn_implementation("sdpa")
    return read


def plain_batch(one, batch):
    """The same batch by the model's own eager attention."""
    one.model.set_attn_implementation("eager")
    with torch.no_grad():
        one.model(input_ids=batch.ids, attention_mask=batch.present.long(), output_attentions=True)
    one.model.set_attn_implementation("sdpa")


def through_seam(one, batch):
    """A batch through the seam."""
    with torch.no_grad():
        one.run(batch)


def seconds(work, *given):
    """CPU seconds of one call."""
    start = time.process_time()
    work(*given)
    return time.process_time() - start


def compared(theirs, mine, one, given, rounds):
    """Medians of the two, interleaved."""
    pairs = [(seconds(theirs, one, given), seconds(mine, one, given)) for _ in range(rounds)]
    return [statistics.median(side) for side in zip(*pairs, strict=True)]


def peak(count):
    """Peak MiB of a process that reads that many texts."""
    return measured_peak("benchmarks.transformer", "--read", str(count))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--read", type=int, help="only read so many texts")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    one = subject()
    if chosen.read:
        ours(one, texts(20, chosen.read))
        print(own_peak())
        return
    print(
        f"{date.today().isoformat()}, {platform.machine()}, torch {torch.__version__}, one thread"
    )
    print("| experiment | tokens | theirs, CPU s | ours | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for length, count in ((20, 500), (180, 60)):
        some = texts(length, count)
        a, b = compared(natural, ours, one, some, chosen.rounds)
        print(f"| attention of {count} texts | {length} | {a:.2f} | {b:.2f} | {a / b:.2f}× |")
        batch = one.batch([one.encode(Example(0, text, 0)) for text in texts(length, 16)])
        a, b = compared(plain_batch, through_seam, one, batch, 5 * chosen.rounds)
        print(f"| one batch through the seam | {length} | {a:.3f} | {b:.3f} | {a / b:.2f}× |")
    few, many = peak(200), peak(2000)
    print(f"| peak MiB, 200 and 2 000 texts | 20 | {few:.0f} | {many:.0f} | {many / few:.2f}× |")


if __name__ == "__main__":
    main()
