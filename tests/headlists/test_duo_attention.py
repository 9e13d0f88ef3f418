"""DuoAttention's table as others write it: the same numbers, or one sentence that names the line."""

import numpy as np
import pytest

from headscope.errors import TableError
from headscope.headlists.list_formats import read_heads

SHARES = [[0.5, 0.25, 1e-3], [0.125, 0.75, 1]]
LINES = ["0.5\t0.25\t1e-3", "0.125\t0.75\t1"]
ELSE = "which is no finite number; a file of DuoAttention has nothing else."


@pytest.mark.parametrize(
    "content",
    [
        "0.5 0.25 1e-3\n0.125 0.75 1\n",
        "  0.5   0.25  1e-3 \n0.125 0.75 1",
        "0.5\t 0.25\t1e-3 \n0.125\t0.75 \t1\n",
        "0.5\t0.25\t1e-3\t\n0.125\t0.75\t1\t\n",
        "0.5\t0.25\t1e-3\t \n0.125\t0.75\t1\n",
        "\n".join([*LINES, "", " ", "\t", ""]),
        "\r\n".join([*LINES, ""]),
        "\n".join(["# h0 h1 h2", *LINES, "# the end"]),
        "\n".join(["h0\th1\th2", *LINES]),
        "\n".join(["head 1\thead 2\thead 3", *LINES]),
        "\n".join(["KV_head_0\tKV_head_1\tKV_head_2\t", *LINES]),
        "\n".join(["\ufeff0.5\t0.25\t1e-3", LINES[1]]),
    ],
    ids=[
        "spaces", "more spaces", "both", "tabs at the end", "a tab and a space", "blank lines at the end", "Windows",
        "comments", "a header", "a header from 1", "a header of key/value heads", "a byte order mark",
    ],
)  # fmt: skip
def test_what_does_not_change_the_numbers_is_read(tmp_path, content: str) -> None:
    path = tmp_path / "heads.tsv"
    path.write_bytes(content.encode())
    heads = read_heads(path)
    assert {(entry.layer, entry.head): entry.value for entry in heads.entries} == {
        (layer, head): SHARES[layer - 1][head - 1] for layer in (1, 2) for head in (1, 2, 3)
    }
    assert (heads.model.layers, heads.model.key_value_heads) == (2, 3)


def test_a_table_of_numpy_without_tabs_is_read(tmp_path) -> None:
    np.savetxt(tmp_path / "heads.tsv", SHARES, header="h0 h1 h2")
    assert [entry.value for entry in read_heads(tmp_path / "heads.tsv").entries] == [*SHARES[0], *SHARES[1]]


def test_a_mask_of_two_heads_is_no_count(tmp_path) -> None:
    path = tmp_path / "heads.tsv"
    path.write_text("0\t1\n1\t0\n")
    assert [entry.value for entry in read_heads(path).entries] == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("0.5\t0.25\n0.5\tmuch\n", f"line 2 of {{path}} has 'much', {ELSE}"),
        ("nan\n", f"line 1 of {{path}} has 'nan', {ELSE}"),
        ("0.5 -inf\n", f"line 1 of {{path}} has '-inf', {ELSE}"),
        ("0.5\n1_0\n", f"line 2 of {{path}} has '1_0', {ELSE}"),
        ("0.5\t0.2_5\n", f"line 1 of {{path}} has '0.2_5', {ELSE}"),
        ("\u0661\n", f"line 1 of {{path}} has '\u0661', {ELSE}"),
        ("0.5,0.25\n", f"line 1 of {{path}} has '0.5,0.25', {ELSE}"),
        ("0.5\t\t\n", f"line 1 of {{path}} has '', {ELSE}"),
        ("layer\th0\n1\t0.5\n", f"line 1 of {{path}} has 'layer', {ELSE}"),
        ("h0\th2\n1\t0.5\n", f"line 1 of {{path}} has 'h0', {ELSE}"),
        ("h0\th1\nh0\th1\n", f"line 2 of {{path}} has 'h0', {ELSE}"),
        ("# shares\n0.5\t0.25\n0.5\t0.25\t1\n", "line 3 of {path} has 3 numbers and line 2 has 2; each layer must "
         "have as many key/value heads, with tabs between them."),
        ("h0\th1\n0\t0.5\t0.25\n", "line 2 of {path} has 3 numbers and line 1 has 2; each layer must have as many "
         "key/value heads, with tabs between them."),
        ("0.5\t0.25\n\n0.5\t0.25\n", "line 2 of {path} is empty, and each line is a layer; remove it, or write the "
         "numbers of the layer."),
        ("0\t1\t2\n0.5\t0.25\t1\n", "line 1 of {path} counts 0, 1, 2 and so on, as the numbers of heads do; remove "
         "it, for a file of DuoAttention has shares alone."),
        ("1\t0.5\n2\t0.25\n3\t1\n", "the first column of {path} counts 1, 2, 3 and so on, as the numbers of layers "
         "do; remove it, for a file of DuoAttention has shares alone."),
        ("h0\th1\n", "{path} is empty; a file of DuoAttention has a line of numbers for each layer."),
        ("# nothing\n\n", "{path} is empty; a file of DuoAttention has a line of numbers for each layer."),
    ],
)  # fmt: skip
def test_what_could_change_the_numbers_is_one_sentence(tmp_path, content: str, sentence: str) -> None:
    path = tmp_path / "heads.tsv"
    path.write_bytes(content.encode())
    with pytest.raises(TableError) as caught:
        read_heads(path)
    assert str(caught.value) == sentence.format(path=path)
