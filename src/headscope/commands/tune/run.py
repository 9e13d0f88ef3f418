"""Fine-tuning: a model on a task, and on its control, several seeds each.

task --read--> examples --tune--> a folder of runs, and of the runs on the control
"""

from headscope.commands.progress import Progress
from headscope.commands.tune.request import Tune
from headscope.learn.tune import Tuned, tune


def run(request: Tune, progress: Progress) -> Tuned:
    """Tune the model once for each seed, and on the control if there is one."""
    return tune(
        request.learnt,
        request.model,
        request.out,
        request.settings,
        seeds=request.each_seed,
        control=request.control,
        trust_remote_code=request.trust_remote_code,
        resume=request.resume,
        progress=progress,
    )
