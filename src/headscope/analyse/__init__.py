"""Head table -> head table: what the numbers are worth. No torch here.

==================  ===========================================================================
`assess`            the uncertainty of all scores that a table has: the next four at once
`add_intervals`     confidence intervals of scores, clustered by text
`add_significance`  p-values of heads and of the best of all heads, corrected for their number
`add_report`        for each score, the head chosen on one half and scored on the other,
                    beside the best fixed offset and an untrained model
`shortlist_heads`   all heads that stand out, chosen on one half and judged on the other
`add_replication`   the score of the reported heads on another corpus, and whether their lift
                    survives there
`add_regression`    what a head's attention depends on: the gold or the distance
`consistency`       the agreement of the heads' scores on two corpora
`consistencies`     the same, run by run
`add_head_map`      a map of the heads, and clusters of those that attend alike
`add_behaviours`    what each head does, in a word
`name_behaviours`   the same in words, head by head
`check_heads`       which reported heads are kept, and which are lost, in another model
`match_heads`       which head of the model before has become which
`compare_variable`  what tuning changed in the heads, and whether more than its control
`rank_sum`          the exact test of two samples of runs
`list_highest`      the heads with the largest values of a variable, by name
==================  ===========================================================================
"""

from headscope.analyse.agreement import Consistencies, Consistency, consistencies, consistency
from headscope.analyse.behaviour import add_behaviours, name_behaviours
from headscope.analyse.check import check_heads
from headscope.analyse.compare import compare_variable
from headscope.analyse.head_map import add_head_map
from headscope.analyse.match import match_heads
from headscope.analyse.rank import list_highest
from headscope.analyse.ranktests import rank_sum
from headscope.analyse.regression import add_regression
from headscope.analyse.replicate import add_replication
from headscope.analyse.report import add_intervals, add_report, assess
from headscope.analyse.shortlist import shortlist_heads
from headscope.analyse.significance import add_significance

__all__ = [
    "Consistencies",
    "Consistency",
    "add_behaviours",
    "add_head_map",
    "add_intervals",
    "add_regression",
    "add_replication",
    "add_report",
    "add_significance",
    "assess",
    "check_heads",
    "compare_variable",
    "consistencies",
    "consistency",
    "list_highest",
    "match_heads",
    "name_behaviours",
    "rank_sum",
    "shortlist_heads",
]
