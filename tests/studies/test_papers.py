"""The figures of the studies against the tables of the papers, copied here line by line as they print them."""

from collections import defaultdict

import pytest

from headscope.studies import STUDIES, Claim

CLARK_TABLE_1 = """\
All	7-6	34.5	26.3 (1)
prep	7-4	66.7	61.8 (-1)
pobj	9-6	76.3	34.6 (-2)
det	8-11	94.3	51.7 (1)
nn	4-10	70.4	70.2 (1)
nsubj	8-2	58.5	45.5 (1)
amod	4-10	75.6	68.3 (1)
dobj	8-10	86.8	40.0 (-2)
advmod	7-6	48.8	40.2 (1)
aux	4-10	81.1	71.5 (1)
poss	7-6	80.5	47.7 (1)
auxpass	4-10	82.5	40.5 (1)
ccomp	8-1	48.8	12.4 (-2)
mark	8-2	50.7	14.5 (2)
prt	6-7	99.1	91.4 (-1)
"""

CLARK_TABLE_2 = """\
Model	All	Pronoun	Proper	Nominal
Nearest	27	29	29	19
Head match	52	47	67	40
Rule-based	69	70	77	60
Head 5-4	65	64	73	58
"""

ZHAO_TABLE_A1 = """\
baseline	all in scope	34.0	100.0	50.7
baseline	average fixed offset	66.1	8.6	15.2
baseline	best fixed offset (-1)	83.5	11.6	20.4
BERT-base attention	average head	49.5	5.2	9.0
BERT-base attention	best head (8-4)	76.2	41.5	53.8
BERT-large attention	average head	45.4	3.3	5.9
BERT-large attention	best head (14-4)	74.9	28.3	41.0
RoBERTa-base attention	average head	56.0	6.9	12.1
RoBERTa-base attention	best head (9-12)	92.9	19.1	31.1
RoBERTa-large attention	average head	50.2	5.3	9.4
RoBERTa-large attention	best head (15-15)	66.7	21.3	32.3
"""

ZHAO_PRETRAINED_TABLE_A5 = """\
BERT-base Pretrain	0.440		0.418		0.415
BERT-large Pretrain	0.295		0.487		0.482
RoBERTa-base Pretrain	0.438		0.472		0.471
RoBERTa-large Pretrain	0.377		0.504		0.493
"""


def claims(name: str, where: str = "") -> list[Claim]:
    return [claim for claim in STUDIES[name].claims if claim.where.startswith(where)]


def printed(claim: Claim) -> str:
    return f"{claim.paper.number:.{claim.digits}f}"


def test_clark_table_1() -> None:
    rows = defaultdict(list)
    for claim in claims("clark2019", "table 1, "):
        rows[claim.where.removeprefix("table 1, ")].append(claim)
    lines = []
    for label, (best, fixed) in rows.items():
        assert (best.what, fixed.what) == ("best head", "best fixed offset")
        head = best.paper.of.removesuffix(" head to dependent")
        lines.append(f"{label}\t{head}\t{printed(best)}\t{printed(fixed)} ({int(fixed.paper.of)})\n")
    assert "".join(lines) == CLARK_TABLE_1
    # "For all relations in Table 1 except pobj, the dependent attends to the head word".
    assert [label for label, (best, _) in rows.items() if "head to dependent" in best.paper.of] == ["pobj"]


def test_clark_table_2() -> None:
    whats = {"nearest mention": "Nearest", "head match": "Head match", "rule-based": "Rule-based"}
    rows = {name: [name] for name in (*whats.values(), "Head 5-4")}
    classes = []
    for claim in claims("clark2019", "table 2, "):
        name = whats.get(claim.what) or f"Head {claim.paper.of}"
        rows[name].append(printed(claim))
        mention = claim.where.removeprefix("table 2, ").capitalize()
        classes += [mention] if mention not in classes else []
    lines = ["\t".join(("Model", *classes)), *("\t".join(row) for row in rows.values())]
    assert "\n".join(lines) + "\n" == CLARK_TABLE_2


def test_clark_in_the_text() -> None:
    found = {claim.what: claim.paper for claim in claims("clark2019", "section")}
    # "four attention heads (in layers 2, 4, 7, and 8) on average put >50% of their attention on the previous token and
    # five attention heads (in layers 1, 2, 2, 3, and 6) put >50% of their attention on the next token"
    assert found["heads with most of their attention on the token before"].number == 4
    assert found["heads with most of their attention on the token before"].of == "layers 2, 4, 7, 8 of 12"
    assert found["heads with most of their attention on the token after"].number == 5
    assert found["heads with most of their attention on the token after"].of == "layers 1, 2, 2, 3, 6 of 12"
    # "the last layer has a high entropy from [CLS] of 3.89 nats"
    assert found["entropy from [CLS] in the last layer"].number == 3.89


def test_zhao_tables_1_and_a1() -> None:
    rows: dict[str, list[str]] = {}
    for claim in claims("zhao2020", "table "):
        letter, _, what = claim.what.partition(", ")
        first = f"{claim.model} attention" if claim.model else "baseline"
        of = f" ({claim.paper.of})" if claim.paper.of else ""
        cells = rows.setdefault(f"{first}\t{what}{of}", [])
        assert letter == ("P", "R", "F1")[len(cells)]
        # The one misprint of the paper is named where the figure is shown.
        cells.append("92.9" if "prints 92.9, a misprint" in claim.note else printed(claim))
    lines = {"\t".join((name, *cells)) for name, cells in rows.items()}
    assert lines == set(ZHAO_TABLE_A1.splitlines())


def test_zhaos_misprint_contradicts_itself() -> None:
    (claim,) = (claim for claim in STUDIES["zhao2020"].claims if "misprint" in claim.note)
    assert (claim.model, claim.what, claim.paper.number) == ("RoBERTa-base", "P, best head", 82.9)
    f1 = [2 * p * 19.1 / (p + 19.1) for p in (82.9, 92.9)]
    assert [round(f, 1) for f in f1] == [31.0, 31.7]


def test_zhao_consistencies() -> None:
    rows = defaultdict(list)
    for claim in STUDIES["zhao2020"].claims:
        if claim.what.startswith("Kendall"):
            rows[claim.model].append(printed(claim))
    lines = [f"{model} Pretrain\t" + "\t\t".join(cells) for model, cells in rows.items()]
    assert "\n".join(lines) + "\n" == ZHAO_PRETRAINED_TABLE_A5


def test_zhao_in_the_text() -> None:
    # "unlike either the best fixed offset baseline (-1) or the all-in-scope baseline, exceeding both of these in F1";
    # "both distance (beta = 0.043) and label (beta = 0.310) ... true negation scope explains more variance (207.7) than
    # distance (1.5)"
    found = {claim.what: printed(claim) for claim in claims("zhao2020", "section 4.2.1")}
    assert found == {
        "F1, best head, beside all in scope": "53.8",
        "coefficient of the scope, best head": "0.310",
        "coefficient of the distance, best head": "0.043",
        "sum of squares that the scope explains": "207.7",
        "sum of squares that the distance explains": "1.5",
        "rank on reviews of the head that is best on stories": "1",
    }


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_whole(name) -> None:
    study = STUDIES[name]
    assert len({(claim.where, claim.what, claim.model) for claim in study.claims}) == len(study.claims)
    measured = set(study.measurements)
    for claim in study.claims:
        assert set(claim.on) <= measured, claim
        assert claim.model in ("", *study.models), claim
        assert claim.paper.number == claim.paper.number or claim.pattern or claim.paper.of or claim.note, claim
    assert all(set(on) <= measured for on, _ in study.figures.values())
