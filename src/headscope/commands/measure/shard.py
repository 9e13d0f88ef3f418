"""The sums of a shard of a corpus, in a file; `headscope merge` joins the files of all shards into a head table."""

from functools import partial
from pathlib import Path

from headscope.commands.folder import reserve_file
from headscope.commands.inputs import find_head, make_plan
from headscope.commands.measure.request import MeasureShard
from headscope.commands.measure.run import choose_reducers
from headscope.commands.progress import Progress
from headscope.corpora import summarize
from headscope.runner import Run, ShardSums
from headscope.view.headings import name_model


def run(request: MeasureShard, progress: Progress) -> ShardSums:
    """Measure a shard of a corpus, and write its sums to the file."""
    with reserve_file(Path(request.out)) as checkpoint:
        progress("reading the corpus", 0, 0)
        summary = summarize(request.documents)
        request.part.check(summary.documents)
        reducers = choose_reducers(request, summary, None)
        model = request.load(progress, task=find_head(request.task, reducers, request.view))
        whole = Run.open(model, request.documents, reducers, plan=make_plan(request), summary=summary)
        shard = whole.select(request.part)
        step = partial(progress, f"measuring shard {request.part} with {name_model(model.name)}")
        done = shard.add_up(checkpoint=checkpoint, resume=request.resume, progress=step)
        sums = ShardSums.of_run(shard, done)
        sums.write(Path(request.out))
    return sums
