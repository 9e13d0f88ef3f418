"""Prompts as tokens: every token belongs to one part, whatever the tokenizer makes of words and blank lines."""

import pytest
from tokenizers.pre_tokenizers import ByteLevel

import headed
import planted_decoder
import witnesses
from headscope.capture.model.model import Model
from headscope.capture.tokens.prompt_tokens import PromptLayout, make_text
from headscope.corpora.prompts import read_prompts
from headscope.errors import ModelError

RECORD = {
    "system": "the old dog",
    "documents": ["a naïve cat\n\nsees a.m. dogs", "walking in the house"],
    "question": "was unseen quickly",
    "answer": "red house",
}
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def make_model(family: str) -> Model:
    return Model.from_module(*headed.make(family, "causal-lm"), name="mine")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3"])
def test_each_token_is_of_the_part_of_its_first_letter(family: str, order: tuple[int, ...]) -> None:
    model = make_model(family)
    (prompt,) = read_prompts([RECORD]).prompts
    text = PromptLayout(model).tokenize(prompt, order)
    ids, parts = witnesses.mark_prompt(model.tokenizer, RECORD, order)
    begins = int(ids[0] != model.tokenizer.bos_token_id)
    assert text.ids == [model.tokenizer.bos_token_id] * begins + ids
    assert text.parts == ["template"] * begins + parts
    assert {*text.parts} == {"system", "document 1", "document 2", "question", "template"}
    spelt = model.tokenizer.decode([t for t, part in zip(text.ids, text.parts, strict=True) if part == "document 1"])
    assert "".join(spelt.split()) == "".join(RECORD["documents"][order[0]].split())


def test_tokens_are_counted_word_by_word_where_a_word_is_a_token() -> None:
    model = Model.from_module(*planted_decoder.plant())
    (prompt,) = read_prompts([planted_decoder.prompts(1, seed=3)[0]]).prompts
    text = PromptLayout(model).tokenize(prompt, (2, 0, 1))
    for slot, document in enumerate((2, 0, 1), start=1):
        assert text.parts.count(f"document {slot}") == len(prompt.documents[document].split())
    assert text.parts.count("template") == 10
    assert text.parts[planted_decoder.FIRST_OF_DOCUMENTS] == "document 1"


def test_the_token_in_front_can_be_named() -> None:
    model = make_model("gpt2")
    (prompt,) = read_prompts([RECORD]).prompts
    bos, default = model.tokenizer.bos_token_id, PromptLayout(model).tokenize(prompt, (0, 1)).ids
    other = model.tokenizer.vocab["<pad>"]
    assert default[0] == bos
    assert PromptLayout(model, start=other).tokenize(prompt, (0, 1)).ids == [other, *default[1:]]
    llama = make_model("llama")
    default = PromptLayout(llama).tokenize(prompt, (0, 1)).ids
    other = llama.tokenizer.vocab["</s>"]
    assert PromptLayout(llama, start=other).tokenize(prompt, (0, 1)).ids == [other, *default[1:]]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_answer_is_what_stands_behind_the_prompt(family: str) -> None:
    model = make_model(family)
    (prompt,) = read_prompts([RECORD]).prompts
    assert model.tokenizer.decode(PromptLayout(model).tokenize_answer(prompt)).strip() == "red house"
    assert "own text" not in PromptLayout(model).tokenize(prompt, (0, 1)).parts


def test_a_chat_template_is_laid_around_the_parts() -> None:
    model = make_model("llama")
    model.tokenizer.chat_template = CHAT
    model.tokenizer.backend_tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    (prompt,) = read_prompts([RECORD]).prompts
    layout = PromptLayout(model, chat=True)
    text = layout.tokenize(prompt, (1, 0))
    assert model.tokenizer.decode(text.ids) == (
        "<|system|>\nthe old dog</s>\n<|user|>\nDocument 1: walking in the house\n\nDocument 2: a naïve cat\n\n"
        "sees a.m. dogs\n\nQuestion: was unseen quickly</s>\n<|assistant|>\n"
    )
    for part, content in (
        ("system", "the old dog"), ("document 2", RECORD["documents"][0]), ("question", RECORD["question"])
    ):  # fmt: skip
        of_part = [token for token, other in zip(text.ids, text.parts, strict=True) if other == part]
        assert "".join(model.tokenizer.decode(of_part).split()) == "".join(content.split())
    assert model.tokenizer.decode(layout.tokenize_answer(prompt)).strip() == "red house"


# Whoever looks for the first match finds the words of the system text in all other parts.
TRAP = {
    "system": "Answer briefly.",
    "documents": ["Answer briefly. Question: Answer", "Document 1: Answer briefly."],
    "question": "Answer briefly.",
}
USER = (
    ("template", "Document 1: "), ("document 1", "Answer briefly. Question: Answer"),
    ("template", "\n\nDocument 2: "), ("document 2", "Document 1: Answer briefly."),
    ("template", "\n\nQuestion: "), ("question", "Answer briefly."),
)  # fmt: skip
TEMPLATES = {
    "as in ChatML": (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        [("template", "<|im_start|>system\n"), ("system", "Answer briefly."),
         ("template", "<|im_end|>\n<|im_start|>user\n"), *USER,
         ("template", "<|im_end|>\n<|im_start|>assistant\n")],
    ),
    "as in Llama 2": (
        "{% set system = messages[0]['content'] %}{% for message in messages[1:] %}{{ bos_token }}[INST] "
        "{{ ('<<SYS>>\n' + system + '\n<</SYS>>\n\n' if loop.first else '') + message['content'] | trim }} [/INST]"
        "{% endfor %}",
        [("template", "<s>[INST] <<SYS>>\n"), ("system", "Answer briefly."), ("template", "\n<</SYS>>\n\n"), *USER,
         ("template", " [/INST]")],
    ),
    "as in Gemma, the system text in the message of the user": (
        "{{ bos_token }}{% set system = messages[0]['content'] | trim %}{% for message in messages[1:] %}"
        "<start_of_turn>{{ message['role'] }}\n{{ (system + '\n\n' if loop.first else '') + message['content'] }}"
        "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
        [("template", "<s><start_of_turn>user\n"), ("system", "Answer briefly."), ("template", "\n\n"), *USER,
         ("template", "<end_of_turn>\n<start_of_turn>model\n")],
    ),
    "with the words of the system text": (
        "<|system|>Answer briefly. Today is Monday.\n{{ messages[0]['content'] }}\n<|user|>Question: "
        "{{ messages[1]['content'] }}\n<|assistant|>",
        [("template", "<|system|>Answer briefly. Today is Monday.\n"), ("system", "Answer briefly."),
         ("template", "\n<|user|>Question: "), *USER, ("template", "\n<|assistant|>")],
    ),
    "with the user first, and once more": (
        "{{ messages[1]['content'] }}\n{{ messages[0]['content'] }}\n{{ messages[1]['content'] }} |",
        [*USER, ("template", "\n"), ("system", "Answer briefly."), ("template", "\n"), *USER, ("template", " |")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
def test_parts_are_found_by_the_places_of_the_template(name: str) -> None:
    model, (template, pieces) = make_model("llama"), TEMPLATES[name]
    tokenizer = model.tokenizer
    tokenizer.chat_template = template
    tokenizer.backend_tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    (prompt,) = read_prompts([TRAP]).prompts
    tokens = PromptLayout(model, chat=True).tokenize(prompt, (0, 1))
    user = {"role": "user", "content": "".join(text for _, text in USER)}
    messages = [{"role": "system", "content": TRAP["system"]}, user]
    assert tokens.ids == tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert "".join(text for _, text in pieces) == tokenizer.decode(tokens.ids)
    assert tokens.parts == witnesses.mark_pieces(tokenizer, pieces)


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        (None, "the tokenizer of 'mine' has no chat template; leave out --chat."),
        ("{{ raise_exception('no system role') }}", "the chat template of 'mine' does not take the prompt '1' (no"),
        ("{{ messages[1]['content'] | upper }}", "the chat template of 'mine' changes the text of a prompt, so that"),
        ("{{ messages[1]['content'] }}", "the chat template of 'mine' changes the text of a prompt, so that its parts"),
        (
            "{{ messages[0]['content'] }}{{ messages[1]['content'] | replace('dogs', 'cats') }}",
            "the chat template of 'mine' changes the text of a prompt, so that its parts cannot be told apart; leave",
        ),
    ],
)
def test_a_chat_template_that_does_not_fit_is_one_sentence(template: str | None, sentence: str) -> None:
    model = make_model("llama")
    model.tokenizer.chat_template = template
    (prompt,) = read_prompts([RECORD]).prompts
    with pytest.raises(ModelError) as refused:
        PromptLayout(model, chat=True).tokenize(prompt, (0, 1))
    assert str(refused.value).startswith(sentence)


def test_a_text_of_a_batch_has_a_word_for_each_token() -> None:
    model = make_model("gpt2")
    (prompt,) = read_prompts([RECORD]).prompts
    tokens = PromptLayout(model).tokenize(prompt, (0, 1))
    text = make_text("1", tokens, [41, 43])
    assert text.ids == [*tokens.ids, 41, 43]
    assert text.word == [*range(len(text.document.words))] == [*range(len(text.ids))]
