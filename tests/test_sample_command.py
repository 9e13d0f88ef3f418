"""`headscope measure --sample-queries`, as a user types it."""

import re

import tiny
from headscope import heads


def test_a_sample_of_the_query_rows_has_an_interval_for_each_value(run, tmp_path) -> None:
    model = tiny.save(tmp_path / "model")
    text, out = tmp_path / "text.txt", tmp_path / "heads.nc"
    text.write_text("the old dog sees the red cat in a house " * 12, encoding="utf-8")
    code, said, _ = run("measure", model, text, "-r", "surface", "--format", "sentences", "--sample-queries", 32,
                        "--seed", 7, "--explain", "-o", out)  # fmt: skip
    assert code == 0
    said = " ".join(said.split())
    assert "Estimated from about 32 tokens of each long text as queries, at random (seed 7)." in said
    assert "some rows; the output without the matrix: all keys" in said
    table = heads.read_table(out)
    (head,) = re.findall(r"the previous token (\d-\d) ", said)
    layer, number = map(int, head.split("-"))
    ends = [f"{table[f'mass_previous_{end}'].sel(layer=layer, head=number):.3f}" for end in ("lower", "upper")]
    assert f"[{' '.join(end.removeprefix('0') for end in ends)}]" in said
    assert (table["mass_previous_lower"] < table["mass_previous_upper"]).all()


def test_what_cannot_be_sampled_is_refused(run, tmp_path) -> None:
    model, out = tiny.save(tmp_path / "model"), tmp_path / "heads.nc"
    code, _, complaint = run("measure", model, "grammar:23", "-r", "sinks", "--sample-queries", 32, "-o", out)
    assert code == 2
    assert "the reducer `sinks` needs all query rows of a text; measure it apart" in complaint
    code, _, complaint = run("measure", model, "grammar:23", "-r", "surface", "--sample-queries", 31, "-o", out)
    assert code == 2
    assert "--sample-queries" in complaint
    assert not out.exists()
