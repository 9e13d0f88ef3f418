"""Which files are a corpus, in which format, and what a summary counts in it."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from headscope.corpora import FORMATS, Corpus, CorpusSummary, Document, Link, Span, read, summarize
from headscope.errors import CorpusError

TREE = "1\tone\t_\tNUM\t_\t_\t0\troot\t_\t_\n2\tday\t_\tNOUN\t_\t_\t1\tobj\t_\t_\n"
LINES = "\n".join(" ".join([letter * 5] * 23) for letter in "abc") + "\n"
WRAPPED = "\n\n".join("\n".join([" ".join([letter * 5] * 11)] * 2) for letter in "abcd") + "\n"
WIKITEXT = f" = Title = \n{LINES}"
KNOWN = (
    "propbank, conllu, corefud, head-labels, conll2012, ontogum, e2e-coref, gap, starsem, frames, framenet, sfu, "
    "bioscope, blimp, records, linktable, alignments, alignments-from-1, alignments-swapped, "
    "alignments-from-1-swapped, semeval-terms, semeval2016, semeval, wikitext, text-wrapped, text-lines, sentences"
)


def lay_out(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


def refused(*arguments: object, **keywords: object) -> str:
    with pytest.raises(CorpusError) as caught:
        read(*arguments, **keywords)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "content", "expected", "count"),
    [
        ("a.conllu", TREE, "conllu", 1),
        ("a.txt", f"# text = one day\n\n{TREE}", "conllu", 1),
        ("a.txt", LINES, "text-lines", 2),
        ("a.tokens", LINES, "text-lines", 2),
        ("A.TXT", LINES, "text-lines", 2),
        ("a.txt", WRAPPED, "text-wrapped", 3),
        ("a.txt", WIKITEXT, "wikitext", 2),
        ("a.raw", WIKITEXT, "wikitext", 2),
        ("a.txt", "It is.\nIt was.\n", "sentences", 2),
        ("a.tokens", LINES.replace("\n", "\n\n"), "sentences", 3),
        ("a.jsonl", '{"text": "It is."}\n', "records", 1),
        ("README.txt", LINES, "text-lines", 2),
        (".hidden.txt", LINES, "text-lines", 2),
    ],
)
def test_the_format_of_a_file_is_told_from_what_it_holds(tmp_path, file, content, expected, count):
    path = lay_out(tmp_path, {file: content}) / file
    corpus = read(path)
    assert corpus == Corpus(str(path), files=(path,), format=expected, ignored=())
    assert len(list(corpus)) == count


def test_a_named_format_goes_before_what_the_file_looks_like(tmp_path):
    path = lay_out(tmp_path, {"a.md": LINES, "b.txt": WRAPPED})
    assert read(str(path / "a.md"), format="text-lines").format == "text-lines"
    assert read(path / "b.txt", format="text-lines").format == "text-lines"
    assert read(path / "b.txt").format == "text-wrapped"


def test_beside_paragraphs_a_file_without_a_pair_is_no_other_format(tmp_path):
    corpus = read(lay_out(tmp_path, {"a.txt": LINES, "b.txt": "It is.\n"}))
    assert (corpus.format, len(corpus.files), len(corpus)) == ("text-lines", 2, 2)
    sentences = read(lay_out(tmp_path / "short", {"a.txt": "It is.\n", "b.txt": "It was.\n"}))
    assert (sentences.format, [document.id for document in sentences]) == ("sentences", ["a.txt:1", "b.txt:1"])


def test_a_corpus_is_read_anew_each_time(tmp_path):
    corpus = read(lay_out(tmp_path, {"a.conllu": f"{TREE}\n{TREE}"}))
    first, again = iter(corpus), iter(corpus)
    assert next(first).id == "a.conllu:1"
    assert [document.id for document in again] == ["a.conllu:1", "a.conllu:4"]
    assert [document.id for document in first] == ["a.conllu:4"]


def test_a_faulty_line_is_not_reached_before_the_documents_above_it_are_used(tmp_path):
    documents = iter(read(lay_out(tmp_path, {"a.conllu": f"{TREE}\nbroken\n"})))
    assert next(documents).words == ("one", "day")
    with pytest.raises(CorpusError, match=r"a\.conllu:4 has 1 column;"):
        next(documents)


def test_a_folder_is_read_in_the_order_of_relative_paths_and_ids_tell_files_apart(tmp_path):
    corpus = read(lay_out(tmp_path, {"b/x.conllu": TREE, "a/x.conllu": TREE, "c.conllu": TREE, "a.conllu": TREE}))
    assert corpus.files == tuple(tmp_path / name for name in ("a.conllu", "a/x.conllu", "b/x.conllu", "c.conllu"))
    assert [(document.id, document.group) for document in corpus] == [
        ("a.conllu:1", "a.conllu:1"),
        ("a/x.conllu:1", "a/x.conllu:1"),
        ("b/x.conllu:1", "b/x.conllu:1"),
        ("c.conllu:1", "c.conllu:1"),
    ]


def test_annotated_files_go_before_the_texts_beside_them_and_those_are_listed(tmp_path):
    files = {
        "en.conllu": TREE,
        "README.md": "# treebank\n",
        "LICENSE.txt": LINES,
        "stats.xml": "<a/>\n",
        "raw/en.txt": LINES,
        ".git/other.conllu": TREE,
        ".en.conllu": TREE,
    }
    corpus = read(lay_out(tmp_path, files))
    assert corpus.format == "conllu"
    assert corpus.files == (tmp_path / "en.conllu",)
    assert corpus.ignored == tuple(tmp_path / name for name in ("LICENSE.txt", "README.md", "raw/en.txt", "stats.xml"))


@pytest.mark.parametrize("notice", ["README.txt", "readme_first.txt", "LICENSE.txt", "Licence.tokens"])
def test_a_notice_is_not_text_unless_it_is_named_itself(tmp_path, notice):
    lay_out(tmp_path, {notice: LINES, "story.txt": LINES})
    for corpus in (read(tmp_path), read(tmp_path, format="text-lines")):
        assert corpus.files == (tmp_path / "story.txt",)
        assert corpus.ignored == (tmp_path / notice,)


def test_a_named_format_takes_the_files_of_its_suffixes_in_a_folder(tmp_path):
    lay_out(tmp_path, {"a.txt": LINES, "b.txt": WRAPPED, "c.conllu": TREE, "d.tsv": TREE, "e.tsv": "a\tb\n"})
    assert [path.name for path in read(tmp_path, format="text-lines").files] == ["a.txt", "b.txt"]
    assert [path.name for path in read(tmp_path, format="conllu").files] == ["c.conllu", "d.tsv"]


def test_a_folder_with_two_layouts_of_text_is_refused(tmp_path):
    lay_out(tmp_path, {"a.txt": LINES, "b.txt": WRAPPED, "c.txt": LINES})
    assert refused(tmp_path) == (
        f"the folder {str(tmp_path)!r} holds files in several formats (2 in text-lines, 1 in text-wrapped); "
        f"a corpus has one: name the format."
    )


def test_a_folder_with_nothing_to_read_is_refused(tmp_path):
    lay_out(tmp_path, {"README.txt": LINES, "table.csv": "a,b\n", "empty.txt": ""})
    assert refused(tmp_path) == (
        f"the folder {str(tmp_path)!r} has no file in a format that headscope knows among its 3; "
        f"give a folder with files in one of {KNOWN}, or one file and the name of its format."
    )
    assert refused(tmp_path, format="conllu") == (
        f"the folder {str(tmp_path)!r} has no file for the format 'conllu' among its 3; "
        f"give a folder with files in one of {KNOWN}, or one file and the name of its format."
    )


def test_a_file_in_no_known_format_is_refused(tmp_path):
    path = lay_out(tmp_path, {"notes.md": LINES}) / "notes.md"
    assert refused(path) == (
        f"the format of {path} cannot be detected from its name and its first lines; name the format ({KNOWN})."
    )


def test_a_path_that_does_not_exist_is_refused(tmp_path):
    path = tmp_path / "absent"
    assert refused(str(path)) == (
        f"the corpus {str(path)!r} does not exist; give a file, a folder, or 'grammar' for generated sentences."
    )
    assert all(refused("She saw herself. " * times).endswith(" in Python, into a list.") for times in (1, 131))


def test_an_unknown_format_is_refused(tmp_path):
    assert refused(tmp_path, format="xml") == f"the format 'xml' is not known; name one of {KNOWN}."


def test_text_without_a_pair_is_refused_when_it_is_read(tmp_path):
    path = lay_out(tmp_path, {"a.txt": LINES.replace("\n", "\n\n")}) / "a.txt"
    with pytest.raises(CorpusError) as caught:
        list(read(path, format="text-lines"))
    assert str(caught.value) == (
        f"the corpus {str(path)!r}, read as text-lines, gave no document; expected two consecutive paragraphs of at "
        f"least 20 words: if the paragraphs are laid out in another way, name the format ({KNOWN})."
    )
    assert len(list(read(path, format="text-wrapped"))) == 2


def test_another_encoding_is_refused_by_the_reader_and_not_ignored(tmp_path):
    (tmp_path / "a.txt").write_bytes(LINES.encode() + b"caf\xe9\n")
    with pytest.raises(CorpusError, match=r"a\.txt:4 holds the byte 0xe9, which is not UTF-8;"):
        list(read(tmp_path))


def test_formats_are_named_for_themselves():
    assert list(FORMATS) == KNOWN.split(", ")
    assert all(name == format.name for name, format in FORMATS.items())


def test_the_hash_of_one_file_is_that_of_its_bytes(tmp_path):
    corpus = read(lay_out(tmp_path, {"a.conllu": TREE, "stats.xml": "<a/>"}))
    assert corpus.sha256 == hashlib.sha256(TREE.encode()).hexdigest()


def test_the_hash_of_a_folder_changes_with_names_and_contents_only(tmp_path):
    def hash_of(folder: str, files: dict[str, str]) -> str:
        return read(lay_out(tmp_path / folder, files)).sha256

    base = hash_of("1", {"a.conllu": TREE, "b.conllu": TREE})
    assert hash_of("2", {"a.conllu": TREE, "b.conllu": TREE}) == base
    assert hash_of("3", {"a.conllu": TREE, "c.conllu": TREE}) != base
    assert hash_of("4", {"a.conllu": TREE, "b.conllu": TREE + "\n"}) != base
    assert hash_of("5", {"a.conllu": TREE, "b.conllu": TREE, "LICENSE.txt": LINES}) == base


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="the witness is the program sha256sum")
def test_the_hash_of_a_folder_is_what_sha256sum_gives(tmp_path):
    corpus = read(lay_out(tmp_path, {"b/x.txt": LINES, "a.txt": LINES, "c.txt": LINES * 2}))
    listing = subprocess.run(
        ["sha256sum", "a.txt", "b/x.txt", "c.txt"], cwd=tmp_path, check=True, capture_output=True
    ).stdout
    assert corpus.sha256 == hashlib.sha256(listing).hexdigest()


def ontogum(cells: str) -> str:
    rows = "".join(f"{place}\tw{place}\t{cell}\n" for place, cell in enumerate(cells.split()))
    return f"# begin document\n{rows}# end document\n"


def test_files_that_are_read_beside_others_are_hashed_and_not_ignored(tmp_path):
    trees = "".join(f"{n}\tw{n - 1}\t_\tX\t_\t_\t{n - 1}\tdep\t_\t_\n" for n in (1, 2, 3))
    files = {"conll/a.conll": ontogum("(1) _ (1)"), "conllu/a.conllu": trees, "conllu/b.conllu": trees}
    corpus = read(lay_out(tmp_path, files), format="ontogum")
    assert len(next(iter(corpus)).links) == 2
    assert [path.name for path in corpus.ignored] == ["b.conllu"]
    before = corpus.sha256
    (tmp_path / "conllu" / "b.conllu").write_text(trees + "\n")
    assert read(tmp_path, format="ontogum").sha256 == before
    (tmp_path / "conllu" / "a.conllu").write_text(trees + "\n")
    assert read(tmp_path, format="ontogum").sha256 != before


def test_what_a_reader_leaves_out_is_counted_and_is_no_document(tmp_path):
    files = {"a.conll": ontogum("(1) _ (1)"), "b.conll": ontogum("(1) 2)"), "c.conll": ontogum("(3 _ _")}
    corpus = read(lay_out(tmp_path, files))
    assert [document.id for document in corpus] == ["a.conll:a"]
    assert summarize(corpus).skipped == {"documents with an unbalanced coreference bracket": 2}
    assert summarize(corpus).documents == 1


def test_a_corpus_of_which_all_is_left_out_is_refused(tmp_path):
    path = lay_out(tmp_path, {"b.conll": ontogum("(1) 2)")}) / "b.conll"
    with pytest.raises(CorpusError) as refused:
        list(read(path))
    assert str(refused.value) == (
        f"the corpus {str(path)!r} has nothing but documents with an unbalanced coreference bracket (first {path}:3)."
    )


@pytest.mark.parametrize("name", ["grammar:5", "grammar:5:7"])
def test_the_grammar_is_a_corpus_without_files(name):
    corpus = read(name)
    assert corpus == Corpus(name, files=(), format="grammar", ignored=())
    assert summarize(corpus).documents == 5
    assert list(corpus) == list(corpus)


def test_the_grammar_gives_2000_sentences_the_same_in_every_process(generated):
    corpus = read("grammar")
    assert corpus == Corpus("grammar", files=(), format="grammar", ignored=())
    documents = list(corpus)
    assert documents == generated[:2000]
    assert summarize(documents).documents == 2000


def test_the_hash_of_the_grammar_changes_with_count_and_seed():
    hashes = {read(name).sha256 for name in ("grammar:5", "grammar:6", "grammar:5:7", "grammar:5:8")}
    assert len(hashes) == 4
    assert read("grammar:5:0").sha256 == read("grammar:5").sha256
    assert read("grammar:5:0", format="grammar").sha256 in hashes


@pytest.mark.parametrize("name", ["grammar:", "grammar:0", "grammar:many", "grammar:5:", "repeats:5:7:9", "repeats:-5"])
def test_a_misspelt_generated_corpus_is_refused(name):
    assert refused(name) == (
        f"the corpus {name!r} is not understood; generated texts are named '{name[:7]}', '{name[:7]}:COUNT' or "
        f"'{name[:7]}:COUNT:SEED', such as '{name[:7]}:5000:7'."
    )


def test_the_grammar_in_another_format_is_refused():
    assert refused("grammar", format="conllu") == (
        "the corpus 'grammar' is generated, but the format 'conllu' was asked for; "
        "leave the format out, or write './grammar' for a file of that name."
    )


@pytest.mark.parametrize("spelling", ["./grammar", Path("grammar")])
def test_a_file_called_grammar_can_still_be_read(tmp_path, monkeypatch, spelling):
    lay_out(tmp_path, {"grammar/a.conllu": TREE})
    monkeypatch.chdir(tmp_path)
    assert [document.id for document in read(spelling)] == ["a.conllu:1"]


def test_the_home_folder_may_be_written_as_a_tilde(tmp_path, monkeypatch):
    lay_out(tmp_path, {"bank/sub/a.conllu": TREE})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    corpus = read("~/bank")
    assert corpus.name == "~/bank"
    assert [document.id for document in corpus] == ["sub/a.conllu:1"]


def test_a_summary_counts_what_documents_hold():
    documents = [
        Document(
            "1",
            words=("a", "b", "c"),
            links=(Link(1, 0, "obj"), Link(2, 0, "det"), Link(0, 2, "det"), Link(2, 0, "3", "coreference")),
            spans=(Span(0, 1, "DET", "upos"), Span(1, 2, "NOUN", "upos"), Span(0, 3, "1", "cue")),
            group="text",
        ),
        Document("2", words=("a", "b"), links=(Link(1, 0, "det"),), group="text"),
        Document("3", words=("a", "b", "c", "d", "e"), boundary=2),
        Document("4", words=("a",)),
    ]
    assert summarize(iter(documents)) == CorpusSummary(
        documents=4,
        words=11,
        texts=3,
        pairs=1,
        links={"dependency": {"det": 3, "obj": 1}, "coreference": {"3": 1}},
        spans={"upos": 2, "cue": 1},
        skipped={},
    )
    assert list(summarize(documents).links["dependency"]) == ["det", "obj"]


def test_a_corpus_that_names_no_text_has_none():
    unnamed = [Document("1", ("a",)), Document("2", ("b",), group="2"), Document("3", ("c",))]
    assert summarize(unnamed).texts == 0
    # One that is named is enough: the others are texts of their own.
    assert summarize([*unnamed, Document("4", ("d",), group="2"), Document("5", ("e",), group="text")]).texts == 4


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "the corpus has no documents; at least one is needed: check the path and the format."),
        (
            [Document("1", ("a",)), Document("2", ("a",)), Document("1", ("b",))],
            "two documents have the id '1'; each needs its own: rename one of them.",
        ),
        (
            [Document("1", ())],
            "document '1' has no words; a document needs words, each with at least one visible character: "
            "leave it out or correct it.",
        ),
        (
            [Document("1", ("a", " "))],
            "document '1' has an empty word; a document needs words, each with at least one visible character: "
            "leave it out or correct it.",
        ),
    ],
)
def test_a_summary_refuses_what_no_model_can_read(documents, message):
    for given in (documents, iter(documents)):
        with pytest.raises(CorpusError, check=lambda error: str(error) == message):
            summarize(given)


# Counts of data/ud/README.md (German names no texts) and data/text/README.md.
@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "format", "files", "documents", "texts"),
    [
        ("ud/UD_German-GSD", "conllu", 2, 799 + 977, 0),
        ("text/wikitext-2", "wikitext", 2, 1088 + 1203, None),
        ("text/gum", "text-lines", 123, 531, None),
        ("text/litbank_original", "text-wrapped", 14, 5043, 14),
    ],
)
def test_real_folders_are_read_in_their_own_format(data, folder, format, files, documents, texts):
    corpus = read(data / folder)
    found = summarize(corpus)
    assert (corpus.format, len(corpus.files), found.documents) == (format, files, documents)
    assert texts in (None, found.texts)
    assert found.pairs == (0 if format == "conllu" else documents)


@pytest.mark.data
def test_a_treebank_is_summarised_with_what_lies_beside_it(data):
    corpus = read(data / "ud/UD_English-EWT")
    assert {path.name for path in corpus.ignored} == {"LICENSE.txt", "UPSTREAM_README.md", "stats.xml"}
    found = summarize(read(data / "ud/UD_English-EWT/en_ewt-ud-dev.conllu"))
    assert (found.documents, found.words, found.texts) == (2001, 25147, 317)
    assert found.spans == {"upos": 25147, "negation": 273}
    assert found.links["dependency"]["nsubj"] == 1958


def test_a_link_from_a_word_to_itself_is_refused() -> None:
    with pytest.raises(CorpusError) as refused:
        Document("7", ("a", "b"), (Link(1, 1, "obj"),))
    assert str(refused.value) == (
        "document '7' has a link 'obj' from word 1 to itself; a link joins two words: leave it out."
    )
