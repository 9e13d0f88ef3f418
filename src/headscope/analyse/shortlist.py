"""All heads that stand out by a score, not only the best head: chosen on one half of the texts, judged on the other.

table --even folds--> candidates --odd folds--> lifts over rivals, corrected for the candidates --> verdicts on heads
"""

from functools import reduce
from operator import and_

import xarray as xr

from headscope.analyse.report import (
    CHOOSE,
    CLUSTERS,
    MINIMUM,
    SCORED,
    STANDS_OUT,
    has_few_texts,
    list_reported_scores,
)
from headscope.analyse.rivals import (
    add_values,
    choose_rivals,
    describe_values,
    describe_with_ends,
    select_strongest,
)
from headscope.analyse.significance import false_discoveries
from headscope.analyse.uncertainty import ALPHA, Lift, Ratio
from headscope.errors import TableError
from headscope.score import HEAD, Score


def shortlist_heads(table: xr.Dataset, untrained: xr.Dataset | None = None) -> xr.Dataset:
    """Add a verdict on every head, for each row of each score that has rivals.

    The candidates are the heads that beat every rival on the even folds; the options of the rivals are chosen on these
    folds too. On the odd folds, which were not used to choose, each candidate is tested against every rival, and the
    p-values are corrected for the number of candidates (Benjamini and Hochberg 1995).

    Args:
        table: A head table with the sums by fold of its scores, and p-values if there were permutations
            (`add_significance`).
        untrained: The head table of a model of the same shape with random weights, on the same corpus; its best head is
            a rival.

    Returns:
        The table with, for each head and row, after the prefix of the score:

        * ``shortlist_accuracy`` (or another measure, such as ``f1``), with ``shortlist_lower|upper``: the score of the
          head on the odd folds;
        * ``shortlist_lift``, with ``_lower|_upper``: its lift there over the strongest rival;
        * ``shortlist_q``: for a candidate, the false discovery rate of a lift over all rivals; NaN for other heads;
        * ``shortlist_stands_out``: 1 if q is below 0.05, the intervals of its lifts over all rivals lie above 0 and the
          permutation p-value, corrected for all heads, is below 0.05 if there is one; else 0. NaN if there are too few
          items or texts to decide, or the head has no score.

        And for each row ``shortlist_rival``, the name of the strongest rival.

    Raises:
        TableError: The table has no score with rivals, or lacks the sums of one.
    """
    new: dict[str, xr.Variable] = {}
    for score in list_reported_scores(table):
        if untrained is not None or any(rival.applies(table) for rival in score.rivals):
            judged = _judge_heads(table, score, untrained)
            new |= {f"{score.report_prefix}{name}": values for name, values in judged.items()}
    if not new:
        raise TableError("the head table has no score with rivals, which heads could beat; give an untrained model.")
    return add_values(table, new)


def _judge_heads(table: xr.Dataset, score: Score, untrained: xr.Dataset | None) -> dict[str, xr.Variable]:
    """Judge every head by one score; return the variables of the shortlist, without the prefix of the score."""
    ratio = Ratio.of_heads(table, score)
    choosing, scored = ratio.half(CHOOSE), ratio.half(SCORED)
    value = scored.value
    dims = [dim for dim in (*HEAD, score.row_dimension(table)) if dim in value.dims]
    has_score = value.notnull()
    rivals = choose_rivals(table, score, untrained, {}, CHOOSE, SCORED)
    lifts = {name: Lift(scored, rival.scored) for name, rival in rivals.items()}
    before = [Lift(choosing, rival.choosing).value > 0 for rival in rivals.values()]
    is_candidate = reduce(and_, before, has_score)
    # All rivals have to be beaten, so the largest of the p-values holds for all of them together.
    every_p = [lift.p_value().reset_coords(drop=True) for lift in lifts.values()]
    p = xr.concat(every_p, dim="rival", coords="minimal").max("rival", skipna=False)
    q = p.where(is_candidate).transpose(*dims)
    q = q.copy(data=false_discoveries(q.values))
    stands_out = reduce(and_, (lift.interval()[0] > 0 for lift in lifts.values()), (q < ALPHA) & is_candidate)
    if (corrected := f"{score.stem}_p_corrected") in table:
        stands_out = stands_out & (table[corrected] < ALPHA)
    few = (scored.clusters < CLUSTERS) | has_few_texts(table, score)
    for half in (choosing, scored):
        few = few | (half.denominator.sum("fold") < MINIMUM)
    verdict = stands_out.astype(float).where(~few & has_score)
    strongest = select_strongest(lifts, rivals)
    of_head = f"{score.measure} of each head on the half of the texts on which none was chosen"
    less = f"{of_head}, less that of the strongest rival"

    def arrange(values: xr.DataArray) -> xr.DataArray:
        return values.transpose(*dims)

    lift = [arrange(part) for part in (strongest.lift, strongest.lower, strongest.upper)]
    lower, upper = map(arrange, scored.interval())
    there = arrange(has_score)
    new = describe_with_ends("shortlist", arrange(value), (lower, upper), of_head, score, there, score.measure)
    new |= describe_with_ends("shortlist_lift", lift[0], (lift[1], lift[2]), less, score, there)
    what = "false discovery rate of a lift over all rivals, over the heads that beat them on the other half"
    new["shortlist_q"] = describe_values(q, what, "probability")
    what = f"1 if a head {STANDS_OUT}: every lift has an interval above 0 and q is below {ALPHA}; NaN: undecided"
    new["shortlist_stands_out"] = describe_values(arrange(verdict), what, "flag")
    new["shortlist_rival"] = describe_values(strongest.name, "strongest rival on the half that chose", "label")
    return new
