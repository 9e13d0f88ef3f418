"""The command `tune`: fine-tune a model on a task and on its control, with several seeds each.

task --read--> examples --tune--> a folder of runs, and of the runs on the control
"""

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from headscope.commands.progress import Progress
from headscope.commands.tune.request import Tune, TypedTune
from headscope.learn.tune import Tuned, tune
from headscope.view.tuned_report import print_tuned


def run(request: Tune, progress: Progress) -> Tuned:
    """Fine-tune the model once for each seed, also on the control if one is requested."""
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


def show(request: TypedTune, result: Tuned, console: Console) -> None:
    """Print the scores of the runs, and the file that lists them."""
    print_tuned(result.task, result.control, console)
    console.print(f"\nThe runs are listed in {escape(str(Path(request.out) / 'runs.json'))}.", soft_wrap=True)
