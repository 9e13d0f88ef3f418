"""Head table -> head table: what the numbers are worth. No torch here.

===================  ===========================================================================
`analysed`           all that can be told of the scores that a table has: the next four at once
`with_intervals`     confidence intervals of scores, clustered by text
`with_significance`  p-values of heads and of the best of all heads, corrected for their number
`with_report`        for each score, the head chosen on one half and scored on the other,
                     beside the best fixed offset and an untrained model
`with_regression`    what the attention to a negation's cue depends on
`consistency`        whether the same heads score well on two corpora
`consistencies`      the same, run by run
`compare`            what tuning changed in the heads, and whether more than its control
`rank_sum`           the exact test of two samples of runs
`top_heads`          the heads with the largest values of a variable, by name
===================  ===========================================================================
"""

from headscope.analyse.agreement import Consistencies, Consistency, consistencies, consistency
from headscope.analyse.compare import compare
from headscope.analyse.rank import top_heads
from headscope.analyse.ranktests import rank_sum
from headscope.analyse.regression import with_regression
from headscope.analyse.report import analysed, with_intervals, with_report
from headscope.analyse.significance import with_significance

__all__ = [
    "Consistencies",
    "Consistency",
    "analysed",
    "compare",
    "consistencies",
    "consistency",
    "rank_sum",
    "top_heads",
    "with_intervals",
    "with_regression",
    "with_report",
    "with_significance",
]
