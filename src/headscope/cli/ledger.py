"""`headscope ledger`: what each head reads from each part of a prompt while the model writes."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import MEASURED, OUTPUT, argument, option
from headscope.cli.terminal import LOADING, console, show_progress


def ledger(
    model: options.Model,
    prompts: Annotated[
        Path,
        argument("PROMPTS", "JSON Lines of prompts, such as prompts.jsonl: each an object with \"documents\" and "
                 "\"question\", and if there are any \"system\", \"answer\" (read in place of a generated text) and "
                 "\"gold\" (the number of the document with the answer)."),
    ],
    tokens: Annotated[
        int,
        option(MEASURED, "The most tokens that the model generates for a prompt without an answer, such as 64. "
               "Default: 32.", metavar="N"),
    ] = 32,
    chat: Annotated[
        bool,
        option(MEASURED, "Lay the chat template of the tokenizer around prompts. Default: plain labels, such as "
               "Document 1.", "--chat"),
    ] = False,
    start: options.Start = None,
    trust_remote_code: options.Trust = False,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as ledger. Default: headscope-ledger.", "--out", "-o",
                     metavar="FOLDER")
    ] = Path("headscope-ledger"),
    resume: options.Resume = False,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
) -> None:  # fmt: skip
    """Measure what each head reads while the model writes: system text, each document, question and its own text.

    Each document stands once in each slot, so that what is read for its place is told from what is read for what it
    says. The folder holds ledger.nc, a head table; ledger.csv, with a row for each head and part; content.csv, with
    what each head reads of the document with the answer; tokens.csv, with each token of the first 20 prompts; and
    figures/.
    """
    from headscope.jobs.arguments import check_model, check_output_folder
    from headscope.jobs.ledger_arguments import check_tokens, read_prompts

    check_tokens(tokens)
    check_model(model)
    source = read_prompts(prompts)
    check_output_folder(out, "the ledger", "ledger.json")
    with show_progress() as progress:
        progress(LOADING, 0, 0)
        from headscope.jobs.ledger import measure_ledger
        from headscope.view.ledger import print_ledger

        table = measure_ledger(
            model, source, out, tokens=tokens, start=start, chat=chat, batch_tokens=batch_tokens, device=device,
            trust_remote_code=trust_remote_code, resume=resume, progress=progress,
        )  # fmt: skip
    print_ledger(table, console)
    console.print(f"\nAll shares are in {escape(str(out / 'ledger.csv'))}.", soft_wrap=True)
