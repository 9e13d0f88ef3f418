"""Aspects as a task: the restaurants of SemEval-2014 by a loop over the XML."""

from collections import Counter
from xml.etree import ElementTree

import pytest

from headscope.errors import CorpusError
from headscope.learn.aspect_sentiment import read_aspects
from headscope.learn.task import SPLITS

CATEGORIES = ["food", "service", "price", "ambience", "anecdotes/miscellaneous"]


def xml(start: int, stop: int) -> str:
    polarities = ["positive", "negative", "neutral", "conflict"]
    sentences = "".join(
        f'<sentence id="{i}"><text>Its food number {i} .</text><aspectCategories>'
        f'<aspectCategory category="food" polarity="{polarities[i % 4]}"/></aspectCategories></sentence>\n'
        for i in range(start, stop)
    )
    return f"<sentences>\n{sentences}</sentences>\n"


@pytest.mark.parametrize("below", ["absa/semeval2014", "semeval2014", "."])
def test_five_questions_for_each_sentence(tmp_path, below):
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    (tmp_path / below / "Restaurants_Train.xml").write_text(xml(0, 101))
    (tmp_path / below / "Restaurants_Test_Gold.xml").write_text(xml(200, 207))
    task = read_aspects(tmp_path)
    assert [len(task.splits[split]) for split in SPLITS] == [5 * 86, 5 * 15, 5 * 7]
    assert [(example.texts, example.label) for example in task.splits["test"][:2]] == [
        (("what do you think of the food of it ?", "Its food number 200 ."), "positive"),
        (("what do you think of the service of it ?", "Its food number 200 ."), "none"),
    ]
    reviews = {split: {example.texts[1] for example in task.splits[split]} for split in SPLITS}
    assert sum(map(len, reviews.values())) == len(set.union(*reviews.values())) == 108
    assert task.labels == ("positive", "negative", "neutral", "conflict", "none")
    assert task.notes[1] == (
        "validation is 15 of 101 training sentences with all their questions, chosen by a fixed hash"
    )


def test_a_missing_file_is_named(tmp_path):
    (tmp_path / "Restaurants_Train.xml").write_text(xml(0, 5))
    with pytest.raises(CorpusError) as caught:
        read_aspects(tmp_path)
    assert str(caught.value) == (
        f"the task aspects needs absa/semeval2014/Restaurants_Test_Gold.xml of SemEval-2014, which {tmp_path} does "
        "not hold; give the folder that holds them."
    )


@pytest.mark.data
def test_restaurants_have_their_published_sentences_and_polarities(data):
    task = read_aspects(data)
    for file, splits, sentences in (("Train", SPLITS[:2], 3044), ("Test_Gold", SPLITS[2:], 800)):
        root = ElementTree.parse(data / f"absa/semeval2014/Restaurants_{file}.xml").getroot()
        assert len(root) == sentences
        wanted: Counter[tuple[str, str]] = Counter()
        for sentence in root:
            polarity_of = {aspect.get("category"): aspect.get("polarity") for aspect in sentence.iter("aspectCategory")}
            wanted.update((category.split("/")[0], polarity_of.get(category, "none")) for category in CATEGORIES)
        examples = [example for split in splits for example in task.splits[split]]
        assert len(examples) == 5 * sentences
        assert Counter((example.texts[0].split()[6], example.label) for example in examples) == wanted
    groups = [{example.group for example in task.splits[split]} for split in SPLITS]
    assert [len(group) for group in groups] == [2844, 200, 800]
    assert sum(map(len, groups)) == len(set.union(*groups))
