"""Train the small translator of ``docs/howto/align.md``, and write word-aligned pairs: ``make_translator.py FOLDER``.

The sentences are the short ones of the corpus ``grammar``. Their translation is into a made-up language that puts every
word behind the words that depend on it and spells it backwards, so that which words are aligned is known exactly. It
takes two minutes on a processor.
"""

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

import headscope
from headscope.corpora import Document, Link

TRAINED, MEASURED, LONGEST = 20_000, 3000, 11
STEPS, BATCH, RATE = 700, 64, 3e-3
SPECIAL = ("<pad>", "</s>", "<unk>")


def translate(document: Document) -> Document:
    """A sentence with its translation, in which each word stands behind those that depend on it."""
    links = [link for link in document.links if link.kind == "dependency"]
    below, inner = defaultdict(list), {link.source for link in links}
    for link in sorted(links, key=lambda link: link.source):
        below[link.target].append(link.source)

    def order(word: int) -> list[int]:
        return [*(place for child in below[word] for place in order(child)), word]

    places = [place for word in range(len(document.words)) if word not in inner for place in order(word)]
    translation = tuple(document.words[place][::-1] + "_" for place in places)
    alignment = tuple(Link(place, word, "sure", kind="alignment") for word, place in enumerate(places))
    return replace(document, links=(), spans=(), translation=translation, alignment=alignment)


def make_tokenizer(documents: list[Document]) -> PreTrainedTokenizerFast:
    """One token for each word of both languages."""
    words = sorted({word for document in documents for word in (*document.words, *document.translation)})
    built = Tokenizer(models.WordLevel({word: i for i, word in enumerate((*SPECIAL, *words))}, unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    built.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=built, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=62
    )


def train(documents: list[Document], tokenizer: PreTrainedTokenizerFast) -> BartForConditionalGeneration:
    """A BART of two and three layers of four heads, trained to translate."""
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=64, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64,
        dropout=0.0, init_std=0.05, pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1,
        forced_eos_token_id=1,
    )  # fmt: skip
    model = BartForConditionalGeneration(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS, pct_start=0.1)
    generator = torch.Generator().manual_seed(0)
    for step in range(STEPS):
        chosen = [documents[i] for i in torch.randint(len(documents), (BATCH,), generator=generator).tolist()]
        sides = ([list(document.words) for document in chosen], [list(document.translation) for document in chosen])
        read, write = (tokenizer(side, is_split_into_words=True, padding=True, return_tensors="pt") for side in sides)
        labels = write["input_ids"].masked_fill(write["attention_mask"] == 0, -100)
        loss = model(input_ids=read["input_ids"], attention_mask=read["attention_mask"], labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    return model.eval()


def count_translated(
    model: BartForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, documents: list[Document]
) -> int:
    """The sentences that the model translates without a mistake."""
    right = 0
    for document in documents:
        read = tokenizer(list(document.words), is_split_into_words=True, return_tensors="pt")
        written = model.generate(**read, num_beams=1, do_sample=False, max_new_tokens=30)[0]
        right += tokenizer.decode(written, skip_special_tokens=True).split() == list(document.translation)
    return right


def main() -> None:
    """Write the model and the pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    trained, measured = (
        [translate(document) for document in headscope.read(corpus) if len(document.words) <= LONGEST]
        for corpus in (f"grammar:{TRAINED}:1", f"grammar:{MEASURED}:2")
    )
    tokenizer = make_tokenizer(trained + measured)
    print(f"{len(trained)} pairs to train on, {len(measured)} to measure, {len(tokenizer)} tokens", flush=True)
    model = train(trained, tokenizer)
    print(f"{count_translated(model, tokenizer, measured)} of the pairs to measure are translated as they should be")
    for part in (model, tokenizer):
        part.save_pretrained(folder / "translator")
    lines = []
    for document in measured:
        links = " ".join(f"{link.source}-{link.target}" for link in document.alignment)
        lines.append(f"{' '.join(document.words)} ||| {' '.join(document.translation)} ||| {links}\n")
    (folder / "pairs.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
