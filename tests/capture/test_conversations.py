"""Conversations as a model reads them: the tokens of its chat template, each of a word or of the template."""

from typing import Any

import pytest
import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

import headed
import headscope
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan
from headscope.capture.tokens.align import Aligned, Alignment
from headscope.commands.explore.page_model import show_neurons
from headscope.corpora import Document, Message, read
from headscope.errors import CorpusError, ModelError
from headscope.examples import STEPS
from headscope.intervene.prediction import SentenceReader, find_scored
from headscope.reducers import Surface, WordClass
from headscope.runner.example_texts import read_texts

CHAT = [
    {"role": "system", "content": " the dog.\n"},
    {"role": "user", "content": "user?  the dog.\n\nuser"},
    {"role": "model", "content": "user"},
    {"role": "user", "content": ""},
    {"role": "model", "content": "the dog."},
]
WORDS = "the dog. user? the dog. user user the dog.".split()

# What each template writes of `CHAT`, by hand, with braces around what is said.
TEMPLATES = {
    "as in ChatML": (
        "{% for message in messages %}<|{{ message['role'] }}\n{{ message['content'] }}|>\n{% endfor %}",
        "<|system\n{ the dog.\n}|>\n<|user\n{user?  the dog.\n\nuser}|>\n<|model\n{user}|>\n<|user\n|>\n<|model\n"
        "{the dog.}|>\n",
    ),
    "as in Llama 2": (
        "{% set system = messages[0]['content'] %}{% for message in messages[1:] %}{% if message['role'] == 'user' %}"
        "{{ bos_token + '[INST] ' + ('<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' if loop.first else '') "
        "+ message['content'] | trim + ' [/INST]' }}{% else %}{{ ' ' + message['content'] | trim + ' ' + eos_token }}"
        "{% endif %}{% endfor %}",
        "<s>[INST] <<SYS>>\n{ the dog.\n}\n<</SYS>>\n\n{user?  the dog.\n\nuser} [/INST] {user} </s>"
        "<s>[INST]  [/INST] {the dog.} </s>",
    ),
    "as in Gemma, the system text in the message of the user": (
        "{{ bos_token }}{% set system = messages[0]['content'] | trim %}{% for message in messages[1:] %}"
        "<t>{{ message['role'] }}\n{{ (system + '\n\n' if loop.first else '') + message['content'] | trim }}</t>\n"
        "{% endfor %}",
        "<s><t>user\n{the dog.}\n\n{user?  the dog.\n\nuser}</t>\n<t>model\n{user}</t>\n<t>user\n</t>\n<t>model\n"
        "{the dog.}</t>\n",
    ),
    "with the words of the system text": (
        "the dog. user? the dog.{% for message in messages %} {{ message['content'] }}{% endfor %}",
        "the dog. user? the dog. { the dog.\n} {user?  the dog.\n\nuser} {user}  {the dog.}",
    ),
    "in upper case": (
        "{% for message in messages %}{{ message['role'] }}: {{ message['content'] | upper }}|{% endfor %}",
        "system: { THE DOG.\n}|user: {USER?  THE DOG.\n\nUSER}|model: {USER}|user: |model: {THE DOG.}|",
    ),
}


def make_model(template: str | None) -> Model:
    model = Model.from_module(*headed.make("llama", "causal-lm"), name="mine")
    model.tokenizer.chat_template = template
    model.tokenizer.backend_tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    return model


def align(model: Model, chat: list[dict[str, Any]], **settings: Any) -> tuple[Aligned | None, dict[str, int]]:
    aligned, skipped = Alignment.for_model(model, **settings).align([*read([chat])])
    return next(iter(aligned), None), dict(skipped)


def mark(tokenizer: PreTrainedTokenizerFast, marked: str) -> list[int]:
    """For each token the word that it is of, -2 where it is white space of a message and -1 where of the template."""
    letters, words, said, before = [], 0, False, ""
    for letter in marked:
        if letter in "{}":
            said = letter == "{"
        elif said and not letter.isspace():
            words += before.isspace() or before in "{}"
            letters.append(words - 1)
        else:
            letters.append(-2 if said else -1)
        before = letter
    text, numbers = marked.replace("{", "").replace("}", ""), []
    for first, end in tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]:
        if text[first:end] == " " and not text[first - 1].isspace() and letters[end] >= 0:
            numbers.append(letters[end])  # the space before a word is a part of it
        else:
            numbers.append(max(letters[first:end], key=lambda number: (number >= 0, number == -1)))
    return numbers


@pytest.mark.parametrize("name", TEMPLATES)
def test_tokens_are_those_of_the_chat_template_and_know_their_words(name: str) -> None:
    template, marked = TEMPLATES[name]
    model = make_model(template)
    text, skipped = align(model, CHAT)
    assert text is not None
    assert text.ids == model.tokenizer.apply_chat_template(CHAT)["input_ids"]
    assert text.word == mark(model.tokenizer, marked)
    assert text.document.words == tuple(WORDS)
    assert [(span.label, text.document.words[span.start : span.end]) for span in text.document.spans] == [
        ("system", ("the", "dog.")),
        ("user", ("user?", "the", "dog.", "user")),
        ("model", ("user",)),
        ("model", ("the", "dog.")),
    ]
    assert not skipped
    written, _ = align(model, CHAT, text="written")
    assert written is not None
    assert (written.ids, written.word) == (text.ids, text.word)


def test_a_content_in_parts_is_written_as_the_template_does() -> None:
    model = make_model(
        "{% for message in messages %}{% for part in message['content'] %}<{{ part['text'] }}>{% endfor %}{% endfor %}"
    )
    chat = [{"role": "user", "content": [{"type": "text", "text": "the dog"}, {"type": "text", "text": "sees"}]}]
    text, skipped = align(model, chat)
    assert text is not None
    assert text.ids == model.tokenizer.apply_chat_template(chat)["input_ids"]
    assert text.word == mark(model.tokenizer, "<{the dog}><{sees}>")
    assert text.document.messages == (Message("user", ("the dog", "sees")),)
    assert not skipped


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (
            "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}",
            "conversations that the chat template does not take (no system role)",
        ),
        (
            "{{ messages[1]['content'] }}",
            "conversations in which the chat template changes or leaves out words",
        ),
        (
            "{% for message in messages %}{{ message['content'].split('dog')[0] }}|{% endfor %}",
            "conversations in which the chat template changes or leaves out words",
        ),
        (
            "{% for message in messages[::-1] %}{{ message['content'] }}|{% endfor %}",
            "conversations whose messages cannot be told apart in what the chat template writes",
        ),
        (
            "{% for message in messages + messages %}{{ message['content'] }}|{% endfor %}",
            "conversations whose messages cannot be told apart in what the chat template writes",
        ),
        (
            "{% for message in messages %}{{ 'Q' if '?' in message['content'] }}{{ message['content'] }}|{% endfor %}",
            "conversations whose messages cannot be told apart in what the chat template writes",
        ),
    ],
)
def test_what_cannot_be_told_apart_is_left_out_and_counted(template: str, reason: str) -> None:
    assert align(make_model(template), CHAT) == (None, {reason: 1})


def test_a_list_of_parts_that_a_template_writes_as_python_does_is_left_out() -> None:
    chat = [{"role": "user", "content": [{"type": "text", "text": "the dog"}]}]
    reason = "conversations that the chat template does not take (it writes a list of parts as Python does)"
    assert align(make_model("{{ messages[0]['content'] }}"), chat) == (None, {reason: 1})


def test_a_tokenizer_without_a_chat_template_is_one_sentence() -> None:
    with pytest.raises(ModelError) as refused:
        align(make_model(None), CHAT)
    assert str(refused.value) == (
        "the document '0' is a conversation, and the tokenizer has no chat template; give a model that was trained on "
        "conversations, or texts in place of messages."
    )


@pytest.mark.parametrize("limit", [5, 11, 25, 26, 27, 28, 29])
def test_a_conversation_is_cut_behind_the_last_word_that_fits(limit: int) -> None:
    model = make_model(TEMPLATES["as in ChatML"][0])
    chat = [{"role": "user", "content": "the dog"}, {"role": "model", "content": "a cat sees the red house"}]
    whole, _ = align(model, chat)
    assert whole is not None
    cut, skipped = align(model, chat, max_tokens=limit, cut=True)
    inside = [word for word in range(8) if max(i for i, own in enumerate(whole.word) if own == word) < limit]
    if not inside:
        assert (cut, skipped) == (None, {f"documents longer than {limit} tokens": 1})
        return
    assert cut is not None
    end = max(i for i, own in enumerate(whole.word) if own in inside) + 1
    assert (cut.ids, cut.word) == (whole.ids[:end], whole.word[:end])
    assert cut.document.words == whole.document.words[: len(inside)]
    behind = {"words after the cut": 8 - len(inside)} if len(inside) < 8 else {}
    assert skipped == {f"documents cut to {limit} tokens (the rest is used)": 1, **behind}
    assert align(model, chat, max_tokens=limit) == (None, {f"documents longer than {limit} tokens": 1})
    # What is read of it anew, such as for a check of the model, is the same; where no word is cut off, for the limit.
    again, _ = Alignment.for_model(model, **({} if behind else {"max_tokens": limit, "cut": True})).align(
        [cut.document]
    )
    assert [(text.ids, text.word) for text in again] == [(cut.ids, cut.word)]


@pytest.mark.parametrize("words", [1, 2, 3, 5, 7, 8])
def test_a_message_that_is_cut_keeps_its_role(words: int) -> None:
    """As the conversation that ends there has roles."""
    (document,) = read(
        [[{"role": "user", "content": "the dog"}, {"role": "model", "content": "a cat sees the red house"}]]
    )
    messages = [("user", ["the", "dog"][:words]), ("model", "a cat sees the red house".split()[: max(0, words - 2)])]
    (ended,) = read([[{"role": role, "content": " ".join(said)} for role, said in messages if said]])
    assert document.truncate(words).spans == ended.spans


def test_all_words_of_a_conversation_that_is_cut_count_for_a_role() -> None:
    model = make_model(TEMPLATES["as in ChatML"][0])
    chat = [{"role": "user", "content": "the dog"}, {"role": "model", "content": "a cat sees the red house"}]
    aligned, _ = align(model, chat, max_tokens=25, cut=True)
    assert aligned is not None
    assert len(aligned.document.words) < 8
    covered = [word for span in aligned.document.spans for word in range(span.start, span.end)]
    assert covered == [*range(len(aligned.document.words))]


def test_the_template_begins_its_text_itself_and_only_words_of_messages_are_scored() -> None:
    model = make_model(TEMPLATES["as in ChatML"][0])
    text, _ = align(model, CHAT)
    assert text is not None
    for form in ("written", "spaced"):
        assert SentenceReader(model, form).begin(text) is text
    start = model.tokenizer.vocab["</s>"]
    begun = SentenceReader(model, start="</s>").begin(text)
    assert (begun.ids, begun.word) == ([start, *text.ids], [-1, *text.word])
    assert [text.word[place] for place in find_scored(text, causal=True)] == [each for each in text.word if each != -1]


def test_words_are_those_of_the_messages() -> None:
    message = Message("user", "the old dog")
    assert Document("a", ("the", "old"), messages=(message,)).truncate(1).messages == (message,)
    for words, boundary in (("the", "dog"), None), (("the", "old", "dog", "sees"), None), (("the", "old"), 1):
        with pytest.raises(CorpusError) as refused:
            Document("a", words, messages=(message,), boundary=boundary)
        assert str(refused.value) == (
            "document 'a' has other words than its messages, or a second segment; the words are what white space parts "
            "in the messages: correct them."
        )


def test_heads_are_measured_on_what_the_template_writes() -> None:
    """The attention to the first token, and to the words of the user, from the attention that the model returns."""
    module, tokenizer = headed.make("llama", "causal-lm")
    tokenizer.chat_template = TEMPLATES["as in ChatML"][0]
    tokenizer.backend_tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    chats = [CHAT[1:3], [{"role": "user", "content": "the red house"}, {"role": "model", "content": "a dog"}]]

    def find_words_of_user(document: Document) -> list[int]:
        spans = [span for span in document.spans if (span.kind, span.label) == ("role", "user")]
        return [word for span in spans for word in range(span.start, span.end)]

    reducer = Surface(classes=[WordClass("user", find_words_of_user)])
    table = headscope.measure((module, tokenizer), chats, reducer, progress=False)
    marked = [
        "<|user\n{user?  the dog.\n\nuser}|>\n<|model\n{user}|>\n",
        "<|user\n{the red house}|>\n<|model\n{a dog}|>\n",
    ]
    first, user = [], []
    module.set_attn_implementation("eager")
    for chat, each, words in zip(chats, marked, (4, 3), strict=True):
        ids = torch.tensor([tokenizer.apply_chat_template(chat)["input_ids"]])
        weights = torch.stack(module(ids, output_attentions=True).attentions)[:, 0].double()
        of_user = torch.tensor([0 <= word < words for word in mark(tokenizer, each)])
        first.append(weights[..., 0].mean(-1))
        user.append(weights[..., of_user].sum(-1).mean(-1))
    torch.testing.assert_close(torch.tensor(table["mass_first"].values), torch.stack(first).mean(0), atol=1e-6, rtol=0)
    own = torch.tensor(table["mass_class"].sel({"class": "user"}).values)
    torch.testing.assert_close(own, torch.stack(user).mean(0), atol=1e-6, rtol=0)


def test_where_the_template_takes_no_conversation_the_message_says_why() -> None:
    model = make_model("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(CorpusError) as refused:
        headscope.measure(model, [CHAT, CHAT[1:]], "surface", progress=False)
    assert str(refused.value) == (
        "none of the 2 documents could be measured (2 conversations that the chat template does not take (roles must "
        "alternate)); give other documents, or another model."
    )


def test_a_page_asks_about_a_conversation_as_it_was_read() -> None:
    model = make_model(TEMPLATES["as in ChatML"][0])
    (text,) = read_texts(model, [*read([CHAT[1:3]])], Plan())
    assert list(text.messages) == CHAT[1:3]
    tokens = len(text.sides["decoder"].tokens)
    asked = {"words": text.words, "boundary": None, "random_tokens": [], "messages": text.messages, "tokens": tokens}
    for query, key in ((tokens - 1, 3), (17, 11)):
        pair = {"attention_type": "", "head": "2-3", "from": query, "to": key}
        weight = show_neurons(model, Plan(max_tokens=149, cut=True), asked | pair)["weight"]
        assert weight == pytest.approx(text.weights["decoder"][1, 2, query, key] / STEPS, abs=0.5 / STEPS)
