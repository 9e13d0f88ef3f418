"""Head table -> head table: what the numbers are worth. No torch here.

==================  ===========================================================================
`assess`            the uncertainty of all scores that a table has: the next four at once
`add_intervals`     confidence intervals of scores, clustered by text
`add_significance`  p-values of heads and of the best of all heads, corrected for their number
`add_report`        for each score, the head chosen on one half and scored on the other,
                    beside the best fixed offset and an untrained model
`add_replication`   the score of the reported heads on another corpus, and whether their lift
                    survives there
`add_regression`    what a head's attention depends on: the gold or the distance
`consistency`       the agreement of the heads' scores on two corpora
`consistencies`     the same, run by run
`compare_variable`  what tuning changed in the heads, and whether more than its control
`rank_sum`          the exact test of two samples of runs
`top_heads`         the heads with the largest values of a variable, by name
==================  ===========================================================================
"""

from headscope.analyse.agreement import Consistencies, Consistency, consistencies, consistency
from headscope.analyse.compare import compare_variable
from headscope.analyse.rank import top_heads
from headscope.analyse.ranktests import rank_sum
from headscope.analyse.regression import add_regression
from headscope.analyse.replicate import add_replication
from headscope.analyse.report import add_intervals, add_report, assess
from headscope.analyse.significance import add_significance

__all__ = [
    "Consistencies",
    "Consistency",
    "add_intervals",
    "add_regression",
    "add_replication",
    "add_report",
    "add_significance",
    "assess",
    "compare_variable",
    "consistencies",
    "consistency",
    "rank_sum",
    "top_heads",
]
