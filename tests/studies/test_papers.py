"""The figures of the studies against the tables of the papers, copied here line by line as they print them."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from headscope.commands.study.request import PROBE_TABLE
from headscope.studies import STUDIES, Claim
from headscope.studies.findings import VERDICTS
from headscope.studies.sheet import format_number

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
    return format_number(claim.paper.number, claim.digits, claim.significant)


def test_clark_table_1() -> None:
    rows = defaultdict(list)
    for claim in claims("clark2019", "table 1, "):
        rows[claim.where.removeprefix("table 1, ")].append(claim)
    lines = []
    for label, (best, fixed) in rows.items():
        assert (best.what, fixed.what) == ("best head", "best fixed offset")
        head = best.paper.detail.removesuffix(" head to dependent")
        lines.append(f"{label}\t{head}\t{printed(best)}\t{printed(fixed)} ({int(fixed.paper.detail)})\n")
    assert "".join(lines) == CLARK_TABLE_1
    # "For all relations in Table 1 except pobj, the dependent attends to the head word".
    assert [label for label, (best, _) in rows.items() if "head to dependent" in best.paper.detail] == ["pobj"]


def test_clark_table_2() -> None:
    whats = {"nearest mention": "Nearest", "head match": "Head match", "rule-based": "Rule-based"}
    rows = {name: [name] for name in (*whats.values(), "Head 5-4")}
    classes = []
    for claim in claims("clark2019", "table 2, "):
        name = whats.get(claim.what) or f"Head {claim.paper.detail}"
        rows[name].append(printed(claim))
        mention = claim.where.removeprefix("table 2, ").capitalize()
        classes += [mention] if mention not in classes else []
    lines = ["\t".join(("Model", *classes)), *("\t".join(row) for row in rows.values())]
    assert "\n".join(lines) + "\n" == CLARK_TABLE_2


def test_clark_table_3() -> None:
    """Table 3, line by line; the paper's UUAS of the structural probe is that of Hewitt and Manning."""
    rows = {claim.what: f"{printed(claim)} {claim.unit}" for claim in claims("clark2019", "table 3")}
    assert rows.pop("Attn + GloVe less Distances + GloVe") == f"{77 - 58} points of UAS"
    assert rows == {
        "Right-branching": "26 UAS", "Distances + GloVe": "58 UAS", "Random Init Attn + GloVe": "30 UAS",
        "Attn": "61 UAS", "Attn + GloVe": "77 UAS", "structural probe": "80 UUAS",
    }  # fmt: skip


def test_clark_in_the_text() -> None:
    stated = {claim.what: claim.paper for claim in claims("clark2019", "section")}
    # "four attention heads (in layers 2, 4, 7, and 8) on average put >50% of their attention on the previous token and
    # five attention heads (in layers 1, 2, 2, 3, and 6) put >50% of their attention on the next token"
    assert stated["heads with most of their attention on the token before"].number == 4
    assert stated["heads with most of their attention on the token before"].detail == "layers 2, 4, 7, 8 of 12"
    assert stated["heads with most of their attention on the token after"].number == 5
    assert stated["heads with most of their attention on the token after"].detail == "layers 1, 2, 2, 3, 6 of 12"
    # "the last layer has a high entropy from [CLS] of 3.89 nats"
    assert stated["entropy from [CLS] in the last layer"].number == 3.89


def test_zhao_tables_1_and_a1() -> None:
    rows: dict[str, list[str]] = {}
    for claim in claims("zhao2020", "table "):
        if claim.where not in ("table 1", "table A1"):
            continue
        letter, _, what = claim.what.partition(", ")
        first = f"{claim.model} attention" if claim.model else "baseline"
        detail = f" ({claim.paper.detail})" if claim.paper.detail else ""
        cells = rows.setdefault(f"{first}\t{what}{detail}", [])
        assert letter == ("P", "R", "F1")[len(cells)]
        # The one misprint of the paper is named where the figure is shown.
        cells.append("92.9" if "as 92.9" in claim.note else printed(claim))
    lines = {"\t".join((name, *cells)) for name, cells in rows.items()}
    assert lines == set(ZHAO_TABLE_A1.splitlines())


def test_zhaos_misprint_contradicts_itself() -> None:
    (claim,) = (claim for claim in claims("zhao2020", "table A1") if "misprint" in claim.note)
    assert (claim.model, claim.what, claim.paper.number) == ("RoBERTa-base", "P, best head", 82.9)
    f1 = [2 * p * 19.1 / (p + 19.1) for p in (82.9, 92.9)]
    assert [round(f, 1) for f in f1] == [31.0, 31.7]


def test_zhao_consistencies() -> None:
    rows = defaultdict(list)
    for claim in claims("zhao2020", "figure "):
        if claim.what.startswith("Kendall"):
            rows[claim.model].append(printed(claim))
    lines = [f"{model} Pretrain\t" + "\t\t".join(cells) for model, cells in rows.items()]
    assert "\n".join(lines) + "\n" == ZHAO_PRETRAINED_TABLE_A5


def test_zhao_in_the_text() -> None:
    # "unlike either the best fixed offset baseline (-1) or the all-in-scope baseline, exceeding both of these in F1";
    # "both distance (beta = 0.043) and label (beta = 0.310) ... true negation scope explains more variance (207.7) than
    # distance (1.5)"
    stated = {claim.what: printed(claim) for claim in claims("zhao2020", "section 4.2.1")}
    assert stated == {
        "F1, best head, beside all in scope": "53.8",
        "coefficient of the scope, best head": "0.310",
        "coefficient of the distance, best head": "0.043",
        "sum of squares that the scope explains": "207.7",
        "sum of squares that the distance explains": "1.5",
        "rank on reviews of the head that is best on stories": "1",
        "p of Kendall's tau between the corpora, P": "5.24e-15",
        "p of Kendall's tau between the corpora, R": "1.20e-13",
        "p of Kendall's tau between the corpora, F1": "1.56e-13",
    }
    # "the average F1 (p = 7.578 x 10^-5) and the F1 of the best head (p = 0.002089)"; "(p = 1.083 x 10^-5)"
    assert {claim.what: printed(claim) for claim in claims("zhao2020", "section 5.3")} == {
        "p of task against control, F1, average head": "7.578e-05",
        "p of task against control, F1, best head": "0.002089",
        "p of task against control, consistency of F1": "1.083e-05",
    }


ZHAO_TABLE_A2 = """\
BERT-base Negation	96.1 ± 1.3	89.7 ± 1.3	92.8 ± 1.1	-
BERT-base Control	34.8 ± 0.4	36.1 ± 2.2	35.4 ± 1.2	95.9 ± 3.0
BERT-large Negation	97.3 ± 0.9	93.0 ± 1.1	95.1 ± 0.6	-
BERT-large Control	39.2 ± 0.9	33.1 ± 1.0	35.9 ± 0.6	100.0 ± 0.0
RoBERTa-base Negation	97.2 ± 0.9	92.9 ± 1.0	95.9 ± 0.3	-
RoBERTa-base Control	43.4 ± 0.7	45.4 ± 1.2	44.4 ± 0.7	98.3 ± 0.4
RoBERTa-large Negation	97.9 ± 0.9	93.5 ± 1.2	95.7 ± 0.9	-
RoBERTa-large Control	44.1 ± 0.6	45.2 ± 1.8	44.6 ± 1.0	97.9 ± 2.2
"""

ZHAO_TABLE_A3 = """\
BERT-base Average	Control	48.6 ± 1.7	5.3 ± 0.2	9.0 ± 0.4
BERT-base Average	Negation	52.2 ± 2.2	6.6 ± 0.8	11.1 ± 1.2
BERT-large Average	Control	44.8 ± 0.3	4.6 ± 0.1	8.3 ± 0.2
BERT-large Average	Negation	46.0 ± 3.7	4.8 ± 1.5	8.0 ± 2.3
RoBERTa-base Average	Control	53.7 ± 1.7	7.0 ± 0.3	12.0 ± 0.5
RoBERTa-base Average	Negation	55.5 ± 1.9	7.9 ± 0.9	13.4 ± 1.4
RoBERTa-large Average	Control	48.2 ± 2.2	7.0 ± 1.0	11.5 ± 1.3
RoBERTa-large Average	Negation	54.2 ± 3.4	8.0 ± 1.8	13.2 ± 2.7
BERT-base Best (8-4)	Control	65.0 ± 8.9	47.5 ± 11.7	53.1 ± 6.7
BERT-base Best (8-4)	Negation	82.3 ± 4.1	58.6 ± 10.8	67.7 ± 7.9
"""
"""With the two rows that table 3 has and A3 has not; without those before fine-tuning, which are in table A1."""

ZHAO_TABLE_A4 = """\
BERT-base	-0.065	0/3	3/10	0.096	5/0	5/10	0.085	5/0	5/10
BERT-large	-0.098	2/5	7/10	-0.132	0/7	7/10	-0.132	0/8	8/10
RoBERTa-base	-0.134	0/7	7/10	-0.107	0/5	5/10	-0.113	0/6	6/10
RoBERTa-large	-0.155	0/8	8/10	-0.142	0/8	8/10	-0.144	0/8	8/10
"""

ZHAO_TABLE_A5 = """\
BERT-base Control	0.438 \\pm 0.020	10/10	0.406 \\pm 0.034	10/10	0.409 \\pm 0.026	10/10
BERT-base Negation	0.469 \\pm 0.025	10/10	0.519 \\pm 0.020	10/10	0.516 \\pm 0.020	10/10
BERT-large Control	0.0005 \\pm 0.057	3/10	0.007 \\pm 0.039	1/10	0.006 \\pm 0.039	1/10
BERT-large Negation	0.474 \\pm 0.038	10/10	0.523 \\pm 0.082	10/10	0.530 \\pm 0.066	10/10
RoBERTa-base Control	0.456 \\pm 0.022	10/10	0.502 \\pm 0.023	10/10	0.487 \\pm 0.021	10/10
RoBERTa-base Negation	0.521 \\pm 0.024	10/10	0.538 \\pm 0.033	10/10	0.531 \\pm 0.033	10/10
RoBERTa-large Control	0.389 \\pm 0.031	10/10	0.579 \\pm 0.029	10/10	0.561 \\pm 0.026	10/10
RoBERTa-large Negation	0.516 \\pm 0.037	10/10	0.593 \\pm 0.056	10/10	0.584 \\pm 0.054	10/10
"""

GROUPS = {"tuned on negation": "Negation", "tuned on the control": "Control", "tuned on it": "Control"}


def rows_of(*where: str) -> dict[str, list[str]]:
    """The claims of some tables by model and what it was tuned on; a deviation follows its mean."""
    rows = defaultdict(list)
    for claim in (
        claim for name in where for claim in claims("zhao2020", f"table {name}") if claim.where == f"table {name}"
    ):
        group = next((name for words, name in GROUPS.items() if words in claim.what), "")
        head = "\tBest (8-4)" if "best head, tuned" in claim.what else ""
        rows[f"{claim.model} {group}{head}".strip()].append(printed(claim))
    return rows


def test_zhao_tables_2_and_a2() -> None:
    lines = []
    for name, cells in rows_of("2", "A2").items():
        pairs = [f"{mean} ± {sd}" for mean, sd in zip(cells[::2], cells[1::2], strict=True)]
        lines.append("\t".join((name, *pairs, *(["-"] if len(pairs) == 3 else []))))
    assert set(lines) == set(ZHAO_TABLE_A2.splitlines())


def test_zhaos_second_misprint_is_impossible_and_no_other_row_is() -> None:
    """F1 is concave in P and R, so that its mean over runs is at most the F1 of their means; P and R rounded up."""
    for line in ZHAO_TABLE_A2.splitlines():
        p, r, f1 = (float(cell.split(" ±")[0]) for cell in line.split("\t")[1:4])
        highest = 2 * (p + 0.05) * (r + 0.05) / (p + r + 0.1)
        assert (f1 - 0.05 > highest) == line.startswith("RoBERTa-base Negation"), line
    assert round(2 * 97.25 * 92.95 / (97.25 + 92.95), 1) == 95.1
    named = [claim for claim in claims("zhao2020", "table A2") if "misprint" in claim.note]
    assert {(claim.model, claim.paper.number) for claim in named} == {("RoBERTa-base", 95.9)}


def test_zhao_tables_3_and_a3() -> None:
    lines = []
    for name, cells in rows_of("3", "A3").items():
        if len(cells) == 1:  # a test
            continue
        pairs = [f"{mean} ± {sd}" for mean, sd in zip(cells[::2], cells[1::2], strict=True)]
        model, group, *head = name.replace("\t", " ").split(" ", 2)
        lines.append("\t".join((f"{model} {head[0] if head else 'Average'}", group, *pairs)))
    assert set(lines) == set(ZHAO_TABLE_A3.splitlines())


def test_zhao_table_a4() -> None:
    lines = []
    for name, cells in rows_of("A4").items():
        scores = [cells[place : place + 4] for place in (0, 4, 8)]
        lines.append("\t".join((name, *(f"{tau}\t{pos}/{neg}\t{either}/10" for tau, pos, neg, either in scores))))
    assert set(lines) == set(ZHAO_TABLE_A4.splitlines())


def test_zhao_tables_4_and_a5() -> None:
    lines = []
    for name, cells in rows_of("4", "A5").items():
        scores = [cells[place : place + 3] for place in (0, 3, 6)]
        lines.append("\t".join((name, *(f"{tau} \\pm {sd}\t{runs}/10" for tau, sd, runs in scores))))
    assert set(lines) == set(ZHAO_TABLE_A5.splitlines())


@pytest.mark.parametrize("name", ["zhao2020", "aspects2019"])
def test_the_page_on_minilm_has_the_claims_of_today_and_the_verdicts_that_they_allow(name) -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies" / f"{name}-minilm.md").read_text().splitlines()
    patterns = {}
    for claim in claims(name):
        if claim.model in ("", "BERT-base"):
            what = claim.what if claim.unit in ("%", "p") else f"{claim.what} ({claim.unit})"
            patterns[claim.where, what] = (claim.unit, claim.pattern.says if claim.pattern else "")
    start = next(place for place, line in enumerate(page) if line.startswith("| where | what | BERT-base |"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page[start + 2 : start + 2 + len(patterns)]]
    assert {(row[0], row[1]) for row in rows} == set(patterns)
    verdicts = Counter()
    for where, what, _, ours, _, _, verdict, _ in rows:
        word, _, says = verdict.partition(": ")
        verdicts[word] += 1
        unit, pattern = patterns[where, what]
        assert says == (pattern if word in ("holds", "fails", "unclear") else ""), what
        if pattern and unit == "p":
            assert (word == "unclear") == (float(ours.split()[0]) >= 0.05), what
    (counts,) = (line for line in page if line.startswith(f"{len(rows)} claims: "))
    by_verdict = [part.split(" ", 1) for part in counts.removesuffix(".").split(": ")[1].split(", ")]
    assert [int(count) for count, _ in by_verdict] == [verdicts[word] for word in VERDICTS if verdicts[word]]
    assert [line for line in page if line.startswith("- *")] == [
        f"- *{word}*: {meaning}" for word, meaning in VERDICTS.items() if verdicts[word]
    ]


SASHIDA_ABSTRACT = """\
BLiMP: DP = 1.35, MDP = 4.81, Mix = 7.11
LAMBADA: DP = 4.70, MDP = 25.17, Mix = 32.99
"""


def test_sashida_abstract() -> None:
    names = {"single-hop": "DP", "multi-hop": "MDP", "mixed": "Mix"}
    drops = {}
    for claim in claims("sashida2026", "abstract"):
        task, _, what = claim.what.partition(", drop without ")
        if (heads := what.removesuffix(" heads")) in names:
            drops.setdefault(task, []).append(f"{names[heads]} = {printed(claim)}")
    assert "".join(f"{task}: {', '.join(values)}\n" for task, values in drops.items()) == SASHIDA_ABSTRACT
    differences = [printed(claim) for claim in claims("sashida2026", "abstract") if " less that " in claim.what]
    assert differences == ["3.46", "2.30", "20.47", "7.82"]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_whole(name) -> None:
    study = STUDIES[name]
    assert len({(claim.where, claim.what, claim.model) for claim in study.claims}) == len(study.claims)
    measured = set(study.measurements) | set(study.derived)
    measured |= {f"{table}_gradients" for table, measurement in study.measurements.items() if measurement.loss}
    measured |= {f"{table}_task" for table, measurement in study.measurements.items() if measurement.disabled_by}
    measured |= {f"{table}_{match}" for table in study.lesions for match in ("layer", "size")}
    assert {lesions.on for lesions in study.lesions.values()} <= set(study.measurements)
    if study.tuning:
        assert set(study.tuning.measured) <= set(study.measurements)
        assert set(study.tuning.corpora) == set(study.tuning.tasks)
        measured |= {f"{name}_{group}" for name in (*study.tuning.measured, "tuned") for group in ("task", "control")}
    assert all(set(derived.on) <= measured for derived in study.derived.values())
    # The user gives this table; a study does not measure it.
    measured.add(PROBE_TABLE)
    for claim in study.claims:
        assert set(claim.on) <= measured, claim
        assert claim.model in ("", *study.models), claim
        assert claim.paper.number == claim.paper.number or claim.pattern or claim.paper.detail or claim.note, claim
        assert claim.unit != "p" or claim.significant, claim
    assert all(set(on) <= measured for on, _ in study.figures.values())
