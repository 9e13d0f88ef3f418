"""CoNLL-2009, which is not read: its columns are named for what they are, whichever format was asked for."""

import pytest

from headscope.corpora import FORMATS, read
from headscope.corpora.conll2009 import recognise
from headscope.errors import CorpusError
from refusals import refusal

# The first words of a sentence in the layout of the task's description: gold and predicted columns in turn, then
# FILLPRED, PRED and an APRED for each predicate.
ROWS = (
    "1\tShe\tshe\tshe\tPRP\tPRP\t_\t_\t2\t2\tSBJ\tSBJ\t_\t_\tA0\n"
    "2\tsold\tsell\tsell\tVBD\tVBD\t_\t_\t0\t0\tROOT\tROOT\tY\tsell.01\t_\n"
)
BLIND = "1\tShe\t_\tshe\t_\tPRP\t_\t_\t_\t2\t_\tSBJ\t_\t_\n"


@pytest.mark.parametrize("content", [ROWS, BLIND])
@pytest.mark.parametrize("name", ["a.conll", "a.txt", "a.conllu"])
@pytest.mark.parametrize("format", [None, "conllu", "corefud", "propbank"])
def test_it_is_named_and_refused(tmp_path, content, name, format):
    path = tmp_path / name
    path.write_text(f"\n{content}")
    with pytest.raises(CorpusError) as refused:
        list(read(path, format=format))
    assert str(refused.value) == (
        f"{path}:2 has the columns of CoNLL-2009, which headscope does not read; it reads trees in CoNLL-U, and with "
        "them roles of PropBank (`headscope list corpora`): convert the file to CoNLL-U."
    )


@pytest.mark.parametrize(
    "line",
    [
        "1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\t_",
        "1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t2:nsubj\t_\t_\tA0\t_\t_\t_",
        "1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\t_\tsell.01\tA0\tY\t_\t_",
        "1\tShe\tshe\tshe\tPRP\tPRP\t_\t_\t2\t2\tSBJ\tSBJ\t_",
        "1",
    ],
)
def test_treebanks_and_their_roles_are_something_else(line):
    assert not recognise(line.split("\t"))


def test_a_treebank_of_many_columns_that_are_named_is_read(tmp_path):
    names = "ID FORM A B C D E F HEAD G DEPREL H I J K".split()
    path = tmp_path / "a.conllup"
    path.write_text(f"# global.columns = {' '.join(names)}\n{ROWS}")
    (document,) = FORMATS["conllu"].read(path)
    assert [(link.source, link.target, link.label) for link in document.links] == [(0, 1, "SBJ")]
    path.write_text(ROWS)
    assert "CoNLL-2009" in refusal(FORMATS["conllu"].read, path)
