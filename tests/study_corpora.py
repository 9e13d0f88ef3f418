"""A folder with a small corpus for each measurement of each study, in the formats of the real ones."""

import json
from pathlib import Path

SENTENCE = """\
# newdoc id = letter{number}
# sent_id = letter{number}-1
1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_{first}
2\t{noun}\t_\tNOUN\t_\t_\t4\tnsubj\t_\t_{second}
3\tnot\t_\tPART\t_\tPolarity=Neg\t4\tadvmod\t_\t_{rest}
4\tsees\t_\tVERB\t_\t_\t0\troot\t_\t_{predicate}
5\tby\t_\tADP\t_\t_\t7\tcase\t_\t_{rest}
6\tthe\t_\tDET\t_\t_\t7\tdet\t_\t_{rest}
7\t{place}\t_\tNOUN\t_\t_\t4\tobl\t_\t_{third}
8\t.\t_\tPUNCT\t_\t_\t4\tpunct\t_\t_{rest}

"""
ROLES = {
    "first": "\t_\t_",
    "second": "\t_\tARG0",
    "third": "\t_\tARG1",
    "predicate": "\tsee.01\tV",
    "rest": "\t_\t_",
}
CHAINS = "(1)|_|(2)|_|(1)|(2)|(1)|_".split("|")
POLARITIES = ("positive", "negative", "neutral", "conflict")
NOUNS = ("dog", "cat", "house", "old", "red", "was", "a")
"""Words of a token each; every text has two of them, so that no two texts are the same."""


def write(folder: Path, count: int = 43) -> Path:
    """The corpora, each of so many sentences, where the ends of their usual paths lead."""
    folder.mkdir(parents=True, exist_ok=True)
    plain, roles = dict.fromkeys(ROLES, ""), ROLES
    (folder / "en_ewt-ud-dev.conllu").write_text(_sentences(plain, count))
    (folder / "en_ewt-up-dev.conllu").write_text(_sentences(roles, count))
    chains = (folder / "ontogum" / "conll").mkdir(parents=True) or folder / "ontogum" / "conll"
    for number in range(count):
        rows = (f"{i}\t{word}\t{cell}\n" for i, (word, cell) in enumerate(zip(_words(number), CHAINS, strict=True)))
        (chains / f"text{number}.conll").write_text(f"# begin document \n{''.join(rows)}# end document\n\n")
    # Beside the pairs the release has the scores of models.
    texts = {"blimp/order.jsonl": _pairs(count), "blimp/models_summary.jsonl": '{"model": "gpt2"}\n'}
    for name, text in (texts | {"litbank_original/dogs.txt": _novel(count)}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "wikitext-2").mkdir()
    lines = [" ".join(_words(number)) for number in range(count)]
    paragraphs = "".join(f" {line} {line} , {line}\n" for line in lines)
    (folder / "wikitext-2" / "wiki.valid.tokens").write_text(f" = Dogs = \n{paragraphs}")
    (folder / "data_story.json").write_text(json.dumps([_frame(number) for number in range(count)]))
    (folder / "sfu_review_xml").mkdir()
    (folder / "sfu_review_xml" / "no1.xml").write_text(_reviews(count))
    (folder / "Restaurants_Train.xml").write_text(_restaurants(2 * count))
    (folder / "Restaurants_Test_Gold.xml").write_text(_restaurants(count // 2, first=2 * count))
    (folder / "MRPC").mkdir()
    for number, name in enumerate(("train", "dev")):
        rows = (_paraphrase(place + number * count) for place in range(count // (number + 1)))
        (folder / "MRPC" / f"{name}.tsv").write_text("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + "".join(rows))
    return folder


def choose_nouns(number: int) -> tuple[str, str]:
    """The two nouns of a text."""
    return NOUNS[number % len(NOUNS)], NOUNS[number // len(NOUNS) % len(NOUNS)]


def _words(number: int) -> list[str]:
    noun, place = choose_nouns(number)
    return f"the {noun} sees by the {place} of .".split()


def _sentences(columns: dict[str, str], count: int) -> str:
    texts = []
    for number in range(count):
        noun, place = choose_nouns(number)
        texts.append(SENTENCE.format(number=number, noun=noun, place=place, **columns))
    return "".join(texts)


def _pairs(count: int) -> str:
    """Minimal pairs, a line each."""
    pairs = (
        {"sentence_good": f"the {noun} sees {place} .", "sentence_bad": f"{noun} the sees {place} .",
         "field": "syntax", "linguistics_term": "word_order", "UID": "order", "pairID": str(number)}
        for number, (noun, place) in enumerate(map(choose_nouns, range(count)))
    )  # fmt: skip
    return "".join(f"{json.dumps(pair)}\n" for pair in pairs)


def _novel(count: int) -> str:
    """Paragraphs that end with other words."""
    return "\n\n".join(" ".join((_words(number) * 3)[: 20 + number % 3]) for number in range(count)) + "\n"


def _frame(number: int) -> dict:
    noun, place = choose_nouns(number)
    words = f"the {noun} was not seen by the {place} .".split()
    ids = [f"Tale_ch1.snt_{number}_{at}" for at in range(len(words))]
    return {
        "sent": dict(zip(ids, words, strict=True)),
        "pos": dict.fromkeys(ids, "X"),
        "negframe": [{"neg_cue": [ids[3]], "neg_scopes": ids[:3] + ids[4:8], "negated": [ids[4]]}],
        "words": words,
    }


def _reviews(count: int) -> str:
    lines = ""
    for noun, place in map(choose_nouns, range(count)):
        lines += (
            f'<SENTENCE><W>the</W><W>{noun}</W><cue COMMENTS="" ID="1" type="negation"><W>not</W></cue>'
            f'<xcope ID="2"><ref ID="3" SRC="1"></ref><W>sees</W><W>the</W><W>{place}</W></xcope></SENTENCE>\n'
            f"<SENTENCE><W>the</W><W>{noun}</W><W>sees</W></SENTENCE>\n"
        )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<DOCUMENT><DESC></DESC><P>\n{lines}</P></DOCUMENT>'


def _restaurants(count: int, first: int = 0) -> str:
    """Of each three reviews one is of food, one of service, and one of both."""
    reviews = []
    for number in range(first, first + count):
        food, service = number % 3 != 1, number % 3 != 2
        text = f"the dog sees {'soup' if food else 'trees'} , and a {'waiter' if service else 'house'} of {number} ."
        terms, categories = "", ""
        for term, category, there in (("soup", "food", food), ("waiter", "service", service)):
            if there:
                start, polarity = text.index(term), POLARITIES[(number + 2 * (term == "waiter")) % 4]
                terms += f'<aspectTerm term="{term}" polarity="{polarity}" from="{start}" to="{start + len(term)}"/>'
                categories += f'<aspectCategory category="{category}" polarity="{polarity}"/>'
        reviews.append(
            f'<sentence id="{number}">\n<text>{text}</text>\n<aspectTerms>{terms}</aspectTerms>\n'
            f"<aspectCategories>{categories}</aspectCategories>\n</sentence>\n"
        )
    return f"<sentences>\n{''.join(reviews)}</sentences>\n"


def _paraphrase(number: int) -> str:
    same = number % 3 > 0
    one, other = f"the dog {number} sees the house .", f"the house of {number if same else number + 1} sees ."
    return f"{int(same)}\t{number}\t{number + 1}\t{one}\t{other}\n"
