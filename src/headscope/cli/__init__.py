"""The command line: each command parses its arguments, calls the function of the same name in `jobs`, and prints.

Torch takes seconds to load, so a command imports its job when it is called, and `--help` answers at once.
"""

import sys

import typer

from headscope.cli.align import align
from headscope.cli.atlas import atlas
from headscope.cli.check import check
from headscope.cli.commands import Command, Commands
from headscope.cli.compare import compare
from headscope.cli.disable import disable
from headscope.cli.explore import explore
from headscope.cli.export import export
from headscope.cli.ledger import ledger
from headscope.cli.lesions import lesions
from headscope.cli.listing import list_
from headscope.cli.measure import measure
from headscope.cli.merge import merge
from headscope.cli.patterns import patterns
from headscope.cli.probe import probe
from headscope.cli.study import study
from headscope.cli.terminal import console, errors, prepare_terminal, repeat_ignored_interruptions
from headscope.cli.tune import tune
from headscope.errors import HeadscopeError

__all__ = ["app", "console", "errors", "main"]

app = typer.Typer(
    help="Measure what each attention head of a transformer looks at, which relation it marks, and how sure that is.",
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
# In the order of use: the examples of `measure` and `compare` read what the one of `tune` writes.
app.command(
    cls=Command,
    epilog="headscope atlas minilm grammar:300 -o atlas\n"
    "headscope atlas minilm grammar:300 --replicate grammar:300:7 -o atlas",
)(atlas)
app.command(cls=Command, epilog="headscope explore minilm\nheadscope explore atlas --port 8765")(explore)
app.command(cls=Command, epilog="headscope tune negation minilm --data grammar:300 -o negation --seeds 4 --control")(
    tune
)
app.command(
    cls=Command,
    epilog="headscope measure minilm grammar:300 -r scope -o before.nc\n"
    "headscope measure minilm grammar:300 -r relations --replicate grammar:300:7 -o heads.nc\n"
    "headscope measure minilm grammar:300 -r scope --runs negation -o after.nc\n"
    "headscope measure minilm grammar:300 -r scope --runs negation/control -o control.nc\n"
    "headscope measure minilm grammar:300 -r surface --shard 1/2 -o first.npz\n"
    "headscope measure minilm grammar:300 -r surface --shard 2/2 -o second.npz",
)(measure)
app.command(cls=Command, epilog="headscope merge first.npz second.npz -o joined.nc")(merge)
app.command(cls=Command, epilog="headscope compare before.nc after.nc --control control.nc -o changes")(compare)
app.command(
    cls=Command,
    epilog="headscope disable headscope-runs/seed-1 mrpc --data corpora -o effects\n"
    "headscope disable smollm2 blimp --paradigm causative --limit 100 --start '<|endoftext|>' -o effects",
)(disable)
app.command(
    cls=Command,
    epilog="headscope lesions smollm2 blimp --atlas smollm2-atlas --data corpora --limit 20 -o lesions\n"
    "headscope lesions smollm2 wiki.txt --atlas heads.nc --row obj --row nsubj --size 10 -o lesions",
)(lesions)
app.command(
    cls=Command,
    epilog="headscope ledger smollm2 prompts.jsonl -o ledger\n"
    "headscope ledger ./my-model prompts.jsonl --chat --tokens 64 -o ledger",
)(ledger)
app.command(
    cls=Command,
    epilog="headscope align ./my-translator pairs.txt -o aligned\n"
    "headscope align facebook/nllb-200-distilled-600M pairs.txt --source eng_Latn --target fra_Latn --step reading",
)(align)
app.command(
    cls=Command,
    epilog="headscope probe minilm grammar:300 -o probe\n"
    "headscope probe minilm en_ewt-ud-train.conllu --test en_ewt-ud-dev.conllu --words glove.6B.100d.txt.gz -o probe",
)(probe)
app.command(
    cls=Command,
    epilog="headscope patterns minilm grammar:300 -o patterns\n"
    "headscope patterns minilm mrpc --data corpora --annotate my-maps\n"
    "headscope patterns minilm mrpc --data corpora --labels my-maps -o patterns",
)(patterns)
app.command(
    cls=Command,
    epilog="headscope check minilm --against atlas\n"
    "headscope check my-quantised-model --against atlas --tolerance 0.02 --strict -o checked",
)(check)
app.command(
    cls=Command,
    epilog="headscope export atlas -o heads.json\n"
    "headscope export atlas --as model-card -o heads.md\n"
    "headscope export atlas --as duo-attention --row obj -o full_attention_heads.tsv",
)(export)
app.command(cls=Command, epilog="headscope study clark2019 --data corpora -o clark2019")(study)
app.command("list", cls=Command, epilog="headscope list corpora")(list_)


def main() -> None:
    """Run a command; an error of headscope is printed as one sentence, with exit code 2."""
    prepare_terminal()
    try:
        with repeat_ignored_interruptions():
            sys.exit(app(prog_name="headscope", standalone_mode=False) or 0)
    except HeadscopeError as error:
        sentence = str(error)
    except typer.TyperException as error:
        # Of typer's, such as: Missing argument 'MODEL'.
        fault = error.format_message().rstrip(".")
        sentence = f"{fault[:1].lower()}{fault[1:]}; see {_name_command(error)} --help."
    errors.print(f"headscope: {sentence}", soft_wrap=True, markup=False, highlight=False)
    sys.exit(2)


def _name_command(error: typer.TyperException) -> str:
    """The command that typer refused, as it was typed."""
    context: typer.Context | None = getattr(error, "ctx", None)
    return context.command_path if context else "headscope"
