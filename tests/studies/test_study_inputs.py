"""What a study is given: the corpora that it finds, the documents that it selects, and what it refuses."""

import pytest

from headscope import HeadscopeError, study
from headscope.corpora import read
from headscope.errors import CorpusError
from headscope.studies import STUDIES, Measurement
from headscope.studies.locate import locate, select_documents

REFUSALS = {
    "no such study": (
        ("study", "clark2018"),
        f"there is no study 'clark2018' (did you mean clark2019?); there are {', '.join(STUDIES)}.",
    ),
    "a corpus that is missing": (
        ("study", "zhao2020", "--data", "{tmp}", "-o", "{tmp}/out"),
        "the study needs what is not in the folder {tmp}: negation/conandoyle_zhao/data_story.json (ConanDoyle-neg as "
        "the authors prepared it: https://github.com/yiyunzhao/negation-scope-probing, "
        "attention_extraction/data_story.json); negation/sfu_review_xml (SFU Review Corpus with negation and "
        "speculation, XML: https://www.sfu.ca/~mtaboada/SFU_Review_Corpus.html). Put it there, or name another corpus "
        "by --corpus story=PATH.",
    ),
    "a folder that is not there": (
        ("study", "zhao2020", "--data", "{tmp}/nowhere", "--corpus", "review={data}/sfu_review_xml", "-o", "{tmp}/out"),
        "the study needs what is not in {tmp}/nowhere, which is no folder: negation/conandoyle_zhao/data_story.json "
        "(ConanDoyle-neg as the authors prepared it: https://github.com/yiyunzhao/negation-scope-probing, "
        "attention_extraction/data_story.json). Put it there, or name another corpus by --corpus story=PATH.",
    ),
    "a corpus for nothing": (
        ("study", "clark2019", "--data", "{data}", "--corpus", "story={tmp}/a.json", "-o", "{tmp}/out"),
        "a corpus was given for 'story', which the study does not measure; it measures treebank, coreference, text.",
    ),
    "a corpus without a path": (
        ("study", "clark2019", "--data", "{data}", "--corpus", "treebank", "-o", "{tmp}/out"),
        "--corpus is 'treebank'; give TABLE=PATH.",
    ),
    "two corpora for one table": (
        ("study", "clark2019", "--data", "{data}", "--corpus", "text={tmp}/a", "--corpus", "text={tmp}/b"),
        "--corpus gives text twice, as {tmp}/a and as {tmp}/b; give it once.",
    ),
    "a corpus that is not there": (
        ("study", "clark2019", "--data", "{data}", "--corpus", "text={tmp}/a", "-o", "{tmp}/out"),
        "the corpus '{tmp}/a' does not exist; give a file, a folder, or 'grammar' for generated sentences.",
    ),
    "a split to select on without runs": (
        ("study", "clark2019", "--data", "{data}", "--select", "test", "-o", "{tmp}/out"),
        "nothing is fine-tuned without seeds; give --seeds, the number of runs, as well.",
    ),
    "a file for the folder": (
        ("study", "clark2019", "--data", "{data}", "-o", "{tmp}/file"),
        "{tmp}/file is a file; name a folder for the study, or a place where one can be made.",
    ),
    "a corpus without the annotation": (
        ("study", "clark2019", "--model", "{model}", "--data", "{data}", "--corpus", "treebank={data}/data_story.json",
         "-o", "{tmp}/out"),
        "the reducer `relations` needs links between words, and the corpus has none; "
        "give a treebank (CoNLL-U), or measure `surface` only.",
    ),
}  # fmt: skip


def test_corpora_are_found_by_the_end_of_their_path_or_by_name(corpora, tmp_path) -> None:
    of = STUDIES["clark2019"]
    whole = tmp_path / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu"
    whole.parent.mkdir(parents=True)
    whole.write_bytes((corpora / "en_ewt-ud-dev.conllu").read_bytes())
    given = {"coreference": corpora / "ontogum" / "conll", "text": corpora / "wikitext-2"}
    assert locate(of, tmp_path, given) == {"treebank": whole, **given}
    assert locate(of, corpora, {}) == {
        "treebank": corpora / "en_ewt-ud-dev.conllu",
        "coreference": corpora / "ontogum" / "conll",
        "text": corpora / "wikitext-2",
    }


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_sentence_and_code_2(run, model, corpora, tmp_path, case) -> None:
    (tmp_path / "file").write_text("mine")
    places = {"model": model, "data": corpora, "tmp": tmp_path}
    command, sentence = REFUSALS[case]
    code, _, complaint = run(*(part.format(**places) for part in command))
    assert code == 2
    assert complaint.splitlines()[-1] == f"headscope: {sentence.format(**places)}"
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


def test_only_documents_with_the_wanted_spans_are_measured(corpora) -> None:
    measurement = STUDIES["zhao2020"].measurements["review"]
    texts = select_documents(measurement, corpora / "sfu_review_xml", 0)
    everything = list(read(corpora / "sfu_review_xml"))
    assert (len(everything), len(texts.documents), texts.summary.documents) == (86, 43, 43)
    assert texts.part == "43 of 86 documents, with a span of the kind cue"
    assert all(any(span.kind == "cue" for span in document.spans) for document in texts.documents)
    assert texts.sha256 == read(corpora / "sfu_review_xml").sha256


def test_a_corpus_without_such_documents_is_refused(corpora) -> None:
    measurement = STUDIES["zhao2020"].measurements["review"]
    path = corpora / "en_ewt-ud-dev.conllu"
    with pytest.raises(CorpusError) as caught:
        select_documents(measurement, path, 0)
    assert str(caught.value) == f"no document of {path} has a span of the kind 'cue'; give another corpus."


def test_a_sample_is_drawn_by_its_seed_and_stays_in_order(corpora) -> None:
    path = corpora / "en_ewt-ud-dev.conllu"
    everything = [document.id for document in read(path)]

    def sample(count: int, seed: int) -> list[str]:
        texts = select_documents(Measurement("", "", (), "", sample=count), path, seed)
        size = min(count, len(everything))
        assert texts.part == f"{size} of {len(everything)} documents, at most {count} at random (seed {seed})"
        ids = [document.id for document in texts.documents]
        assert texts.summary.documents == len(ids)
        return ids

    drawn = sample(17, 0)
    assert len(drawn) == 17
    assert drawn == [one for one in everything if one in set(drawn)] == sample(17, 0)
    assert drawn != sample(17, 1)
    assert sample(47, 0) == everything


def test_one_corpus_cannot_be_consistent_with_itself(model, corpora, tmp_path) -> None:
    made = study("zhao2020", model, corpora, tmp_path, corpora={"review": corpora / "data_story.json"})
    taus = [one for one in made.findings if one.claim.where == "figure 2"]
    assert [one.verdict for one in taus] == ["not measured"] * 3
    assert taus[0].why == (
        f"both tables are of the corpus {str(corpora / 'data_story.json')!r}; measure one model on two corpora."
    )
    assert not any("figure" in name for name in made.files)
    assert "zhao2020.md" in made.files


def test_an_unknown_name_is_refused_before_anything_is_loaded(corpora, tmp_path) -> None:
    with pytest.raises(HeadscopeError) as caught:
        study("clark", "nowhere", corpora, tmp_path)
    assert str(caught.value) == f"there is no study 'clark'; there are {', '.join(STUDIES)}."
