"""Statistics of head tables: each function takes a head table and returns one with more variables. Needs no torch.

==================  ===========================================================================
`assess`            the uncertainty of all scores of a table: `add_intervals`, `add_significance`,
                    `add_report` and `add_regression` at once
`add_intervals`     confidence intervals of scores, clustered by text
`add_significance`  p-values of each head and of the best head, corrected for the number of heads
`add_report`        for each score, the head that is best on one half of the texts and its score
                    on the other half, next to the best fixed offset and an untrained model
`shortlist_heads`   all heads that stand out, chosen on one half and judged on the other
`add_replication`   the score of the reported heads on another corpus, and whether their lift
                    survives there
`add_regression`    whether a head's attention depends on the gold or on the distance
`consistency`       the agreement of the heads' scores on two corpora
`consistencies`     the same agreement in each of several runs
`add_head_map`      a map of the heads, and clusters of heads that attend alike
`add_behaviours`    the behaviour of each head, as a code
`name_behaviours`   the behaviour of each head, in words
`check_heads`       which reported heads are kept, and which are lost, in another model
`group_heads`       the mean of the heads that share keys and values
`find_dissociations`  the double dissociations of a table of lesions
`summarize_effects`  the effects of disabling heads, over runs
`match_heads`       which head of a tuned model matches which head of the model before
`compare_variable`  the change of the heads by tuning, compared with the change by a control
`rank_sum`          the exact test of two samples of runs
`list_highest`      the heads with the largest values of a variable, by name
==================  ===========================================================================
"""

from headscope.analyse.agreement import Consistencies, Consistency, consistencies, consistency
from headscope.analyse.behaviour import add_behaviours, name_behaviours
from headscope.analyse.check import check_heads
from headscope.analyse.compare import compare_variable
from headscope.analyse.head_map import add_head_map
from headscope.analyse.key_value_heads import group_heads
from headscope.analyse.lesions import find_dissociations
from headscope.analyse.match import match_heads
from headscope.analyse.rank import list_highest
from headscope.analyse.ranktests import rank_sum
from headscope.analyse.regression import add_regression
from headscope.analyse.replicate import add_replication
from headscope.analyse.report import add_intervals, add_report, assess
from headscope.analyse.run_effects import summarize_effects
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
    "find_dissociations",
    "group_heads",
    "list_highest",
    "match_heads",
    "name_behaviours",
    "rank_sum",
    "shortlist_heads",
    "summarize_effects",
]
