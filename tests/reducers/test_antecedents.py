"""Mentions, their head words, and each rule that chooses an antecedent, on sentences that a hand can check."""

import pytest

from headscope.corpora.document import Document, Link, Span
from headscope.reducers.support.antecedents import (
    PRONOUNS,
    RULES,
    Agreement,
    Mention,
    choose_antecedent,
    head_of,
    mentions_of,
    with_earlier,
)

ANYTHING = Agreement("123", "sp", "mfn")


def document(text: str, mentions: dict[str, str], tags: str = "", heads: dict[int, int] | None = None) -> Document:
    """A document of the words of a text; ``"0-2 5"`` are mentions from word 0 to word 2 and of word 5."""
    words = tuple(text.split())
    spans = [Span(word, word + 1, tag, "upos") for word, tag in enumerate(tags.split()) if tag != "_"]
    for chain, places in mentions.items():
        for place in places.split():
            first, _, last = place.partition("-")
            spans.append(Span(int(first), int(last or first) + 1, chain, "mention"))
    links = tuple(Link(word, head, "dep") for word, head in (heads or {}).items())
    return Document("by hand", words, links, tuple(spans))


def mention(text: str, tag: str = "", place: int = -1) -> Mention:
    """A mention whose head word is its last, unless another place is given."""
    words = tuple(text.split())
    place = place % len(words)
    return Mention("1", words, place, place, tag)


# ------------------------------------------------------------- mentions


def test_mentions_stand_in_the_order_of_their_head_words() -> None:
    text = "Mary saw the old dog and it saw her"
    text = document(text, {"1": "8 0", "2": "6 2-4"}, "PROPN VERB DET _ NOUN CCONJ PRON VERB PRON")
    assert mentions_of(text) == [
        Mention("1", ("Mary",), 0, 0, "PROPN"),
        Mention("2", ("the", "old", "dog"), 2, 4, "NOUN"),
        Mention("2", ("it",), 0, 6, "PRON"),
        Mention("1", ("her",), 0, 8, "PRON"),
    ]


def test_a_chain_with_one_mention_is_left_out() -> None:
    text = document("Mary saw John and he left", {"1": "0", "2": "2 4"})
    assert [(mention.chain, mention.head) for mention in mentions_of(text)] == [("2", 2), ("2", 4)]
    assert mentions_of(document("Mary left", {"1": "0"})) == []


def test_of_nested_mentions_with_one_head_word_the_longest_counts_whatever_their_order() -> None:
    heads = {0: 1, 3: 4, 4: 1, 2: 4, 1: 5}  # the dog that she saw barked
    for places in ("0-1 0-4 1 6", "6 1 0-4 0-1", "0-4 0-4 6"):
        text = document("the dog that she saw barked it", {"1": places}, heads=heads)
        assert [(mention.words, mention.head) for mention in mentions_of(text)] == [
            (("the", "dog", "that", "she", "saw"), 1),
            (("it",), 6),
        ]


def test_a_chain_of_nested_mentions_alone_has_one_mention() -> None:
    assert mentions_of(document("the dog left", {"1": "0-1 1"}, heads={0: 1, 1: 2})) == []


def test_of_mentions_of_one_length_and_head_word_the_first_counts() -> None:
    # big dog / dog barking, around one head word
    text = document("big dog barking saw it", {"1": "1-2 0-1 4"}, heads={0: 1, 2: 1, 1: 3, 4: 3})
    assert [mention.words for mention in mentions_of(text)] == [("big", "dog"), ("it",)]


def test_mentions_of_two_chains_may_have_one_head_word() -> None:
    # In a UD tree the first of those that are joined is the head of all. The order does not know the chains.
    text = document("John and Mary left they he", {"1": "0 5", "2": "0-2 4"}, heads={1: 2, 2: 0, 0: 3})
    assert [(mention.chain, mention.head) for mention in mentions_of(text)] == [("2", 0), ("1", 0), ("2", 4), ("1", 5)]


@pytest.mark.parametrize(
    ("heads", "start", "end", "expected"),
    [
        ({0: 1, 1: 5, 2: 4, 3: 4, 4: 1}, 0, 5, 1),  # the man in the hat: the noun, not what follows it
        ({}, 0, 5, 4),  # without a tree the last word
        ({0: 1, 2: 4, 3: 4, 4: 1}, 0, 5, 1),  # the root has no head
        ({0: 1, 1: 6, 2: 4, 3: 4, 4: 6}, 0, 5, 1),  # of two the first
        ({0: 1, 1: 5, 2: 4, 3: 4, 4: 1}, 2, 5, 4),
        ({0: 5, 1: 0}, 0, 1, 0),
        ({0: 4, 4: 0}, 0, 4, 0),  # its head stands right behind the span
        ({1: 0, 2: 0}, 1, 3, 1),  # and right before it
        ({0: 1, 1: 0}, 0, 2, 1),  # a tree that goes round: the last word
    ],
)
def test_the_head_word(heads, start, end, expected) -> None:
    assert head_of(Span(start, end, "1", "mention"), {word: {head} for word, head in heads.items()}) == expected


def test_a_word_with_a_second_head_inside_is_not_the_head_word() -> None:
    assert head_of(Span(0, 2, "1"), {0: {5, 1}, 1: {5}}) == 1


def test_only_dependencies_make_a_tree() -> None:
    text = document("the man left he", {"1": "0-1 3"})
    role = Document(text.id, text.words, (Link(1, 0, "ARG0", "role"), Link(0, 2, "ARG0", "role")), text.spans)
    assert [mention.head for mention in mentions_of(role)] == [1, 3]


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("PRON", ("all", "pronoun")),
        ("PROPN", ("all", "proper")),
        ("NOUN", ("all", "nominal")),
        ("NUM", ("all", "nominal")),
        ("", ("all",)),
    ],
)
def test_classes(tag: str, expected: tuple[str, ...]) -> None:
    assert mention("word", tag).classes == expected


def test_the_class_is_that_of_the_head_word() -> None:
    text = document("the man she saw left he", {"1": "0-3 5"}, "DET NOUN PRON VERB VERB _", {0: 1, 1: 4, 2: 3, 3: 1})
    assert [mention.classes for mention in mentions_of(text)] == [("all", "nominal"), ("all",)]


# ------------------------------------------------------------ agreement


def test_what_is_known_must_meet_and_what_is_unknown_agrees() -> None:
    agreements = {
        "it": Agreement("3", "s", "n"),
        "she": Agreement("3", "s", "f"),
        "they": Agreement("3", "p", "mfn"),
        "I": Agreement("1", "s", "mf"),
        "you": Agreement("2", "sp", "mf"),
        "?": ANYTHING,
    }
    agreeing_pairs = {
        frozenset(pair)
        for pair in [(a, b) for a in agreements for b in agreements]
        if agreements[pair[0]].agrees_with(agreements[pair[1]])
    }
    alike = {frozenset({name}) for name in agreements}
    assert agreeing_pairs == alike | {frozenset({name, "?"}) for name in agreements}
    for agreement in agreements.values():
        for other in agreements.values():
            assert agreement.agrees_with(other) == other.agrees_with(agreement)


def test_each_of_person_number_and_gender_counts() -> None:
    she = Agreement("3", "s", "f")
    assert not she.agrees_with(Agreement("2", "s", "f"))
    assert not she.agrees_with(Agreement("3", "p", "f"))
    assert not she.agrees_with(Agreement("3", "s", "m"))
    assert she.agrees_with(Agreement("3", "sp", "mf"))


@pytest.mark.parametrize(
    ("words", "person", "number", "gender"),
    [
        ("I me my mine myself", "1", "s", "mf"),
        ("we us our ours ourselves", "1", "p", "mf"),
        ("you your yours", "2", "sp", "mf"),
        ("He him HIS himself", "3", "s", "m"),
        ("she her hers herself", "3", "s", "f"),
        ("it its itself", "3", "s", "n"),
        ("they them their theirs themselves", "3", "p", "mfn"),
        ("these those", "3", "p", "mfn"),
        ("that which ours'", "123", "sp", "mfn"),
    ],
)
def test_pronouns(words: str, person: str, number: str, gender: str) -> None:
    for word in words.split():
        assert mention(word, "PRON").agreement == Agreement(person, number, gender)


def test_the_table_holds_letters_that_are_known() -> None:
    assert all(word == word.casefold() for word in PRONOUNS)
    for agreement in PRONOUNS.values():
        assert agreement.person
        assert set(agreement.person) <= set("123")
        assert agreement.number
        assert set(agreement.number) <= set("sp")
        assert agreement.gender
        assert set(agreement.gender) <= set("mfn")


@pytest.mark.parametrize(
    ("text", "tag", "place", "number"),
    [
        ("a man", "NOUN", -1, "s"),
        ("An old man", "NOUN", -1, "s"),
        ("every dog", "NOUN", -1, "s"),
        ("this gas", "NOUN", -1, "s"),
        ("these sheep", "NOUN", -1, "p"),
        ("two sheep", "NOUN", -1, "p"),
        ("the sheep", "NOUN", -1, "sp"),
        ("the team", "NOUN", -1, "sp"),
        ("the dogs", "NOUN", -1, "p"),
        ("a dogs", "NOUN", -1, "s"),  # the determiner comes first
        ("this man 's sons", "NOUN", -1, "p"),
        ("these men 's leader", "NOUN", -1, "sp"),
        ("these men ’s leader", "NOUN", -1, "sp"),
        ("a man with dogs", "NOUN", 1, "s"),
        ("the men with a dog", "NOUN", 1, "p"),
        ("the man of two worlds", "NOUN", 1, "sp"),
        ("the people", "NOUN", -1, "p"),
        ("People", "NOUN", -1, "p"),
        ("the news", "NOUN", -1, "sp"),
        ("the boss", "NOUN", -1, "sp"),
        ("the virus", "NOUN", -1, "sp"),
        ("the crisis", "NOUN", -1, "sp"),
        ("the United States", "PROPN", -1, "sp"),
        ("James", "PROPN", -1, "sp"),
        ("dogs", "", -1, "p"),
        ("Dogs", "", -1, "sp"),  # may be a name
        ("grows", "VERB", -1, "sp"),
        ("a man and a woman", "NOUN", 1, "sp"),
        ("dogs and a cat", "NOUN", 0, "sp"),
        ("one", "NUM", -1, "sp"),  # the head word is not its own determiner
        ("these", "DET", -1, "sp"),
    ],
)
def test_the_number_of_names_and_nominals(text: str, tag: str, place: int, number: str) -> None:
    assert mention(text, tag, place).agreement == Agreement("3", number, "mfn")


@pytest.mark.parametrize(
    ("text", "tag", "expected"),
    [
        ("us", "", PRONOUNS["us"]),
        ("I", "", PRONOUNS["i"]),
        ("It", "", PRONOUNS["it"]),
        ("US", "", Agreement("3", "sp", "mfn")),
        ("US", "PRON", PRONOUNS["us"]),
        ("us", "PROPN", Agreement("3", "sp", "mfn")),
        ("mine", "NOUN", Agreement("3", "sp", "mfn")),
        ("the man who saw her", "", Agreement("3", "sp", "mfn")),
        ("all of us", "PRON", PRONOUNS["us"]),
    ],
)
def test_what_is_taken_for_a_pronoun(text: str, tag: str, expected: Agreement) -> None:
    assert mention(text, tag).agreement == expected


# ---------------------------------------------------------------- rules


def chosen(text: Document, *sieves: str) -> list[int | None]:
    """The word that the first sieve with an answer chooses for each mention, by the order of head words."""
    return [choose_antecedent(sieves, mention, earlier) for mention, earlier in with_earlier(mentions_of(text))]


def test_earlier_mentions_are_those_whose_head_words_stand_before_the_nearest_first() -> None:
    text = document("John and Mary left they he", {"1": "0 5", "2": "0-2 4"}, heads={1: 2, 2: 0, 0: 3})
    before = [[other.head for other in earlier] for _, earlier in with_earlier(mentions_of(text))]
    assert before == [[], [], [0, 0], [4, 0, 0]]


def test_a_mention_that_begins_before_may_have_its_head_word_behind() -> None:
    # [his friend]: the head word of the longer one stands behind that of `his`
    text = document("his friend saw him and his friend left", {"1": "0 3 5", "2": "0-1 5-6"}, heads={0: 1, 5: 6, 1: 2})
    assert chosen(text, "nearest") == [None, 0, 1, 3, 5]


STORY = "the old king saw a queen and the King saw her and the old king left"
PLACES = {"1": "0-2 7-8 12-14", "2": "4-5 10"}  # the old king 2, a queen 5, the King 8, her 10, the old king 14
TAGS = "DET ADJ NOUN VERB DET NOUN CCONJ DET NOUN VERB PRON CCONJ DET ADJ NOUN VERB"


def test_each_sieve_by_hand() -> None:
    text = document(STORY, PLACES, TAGS)
    assert [mention.head for mention in mentions_of(text)] == [2, 5, 8, 10, 14]
    assert chosen(text, "nearest") == [None, 2, 5, 8, 10]
    assert chosen(text, "head_match") == [None, None, 2, None, 8]
    assert chosen(text, "full_match") == [None, None, None, None, 2]
    assert chosen(text, "agreement") == [None, 2, 5, 8, 10]
    assert chosen(text, *RULES["rules"]) == [None, 2, 2, 8, 2]


def test_the_third_sieve_passes_over_what_does_not_agree() -> None:
    text = "she saw two dogs and it saw them before you and I saw its bone with her"
    places = {"1": "0 16", "2": "2-3 7", "3": "5 13", "4": "9 11"}
    tags = "PRON VERB NUM NOUN CCONJ PRON VERB PRON SCONJ PRON CCONJ PRON VERB PRON NOUN ADP PRON"
    text = document(text, places, tags)
    assert [mention.head for mention in mentions_of(text)] == [0, 3, 5, 7, 9, 11, 13, 16]
    # she: first. dogs: not she (number). it: neither. them: dogs. you: none (person). I: none. its: it. her: she.
    assert chosen(text, "agreement") == [None, None, None, 3, None, None, 5, 0]
    assert chosen(text, *RULES["rules"]) == [None, 0, 3, 3, 7, 9, 5, 0]


def test_the_nearest_with_the_same_words_is_chosen() -> None:
    text = document("Mary met ann then ANN met Mary and Ann left", {"1": "0 6", "2": "2 4 8"})
    assert chosen(text, "full_match") == [None, None, 2, 0, 4]
    assert chosen(text, "head_match") == [None, None, 2, 0, 4]


def test_the_same_letters_in_other_words_are_not_the_same_words() -> None:
    text = document("the ice cream and the icecream", {"1": "0-2 4-5"})
    assert chosen(text, "full_match") == [None, None]


def test_rules_say_nothing_of_the_first_mention() -> None:
    assert [choose_antecedent(sieves, mention("he", "PRON"), []) for sieves in RULES.values()] == [None, None, None]
