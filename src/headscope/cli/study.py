"""`headscope study`: a paper's figures beside one's own."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from headscope.cli.options import BatchTokens, Device, Resume, Trust, plan_of
from headscope.cli.terminal import console, show_progress
from headscope.errors import HeadscopeError


def study(
    name: Annotated[str, typer.Argument(help="Of the study (`headscope list studies`).")],
    model: Annotated[str, typer.Option(help="A hub id, a folder, or minilm.")] = "minilm",
    data: Annotated[Path, typer.Option(envvar="HEADSCOPE_DATA", help="The folder that holds the corpora.")] = Path(),
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("headscope-study"),
    corpus: Annotated[
        list[str] | None, typer.Option(help="Another corpus for one of the tables, as TABLE=PATH: treebank=wsj.conllu.")
    ] = None,
    recorded: Annotated[
        Path | None, typer.Option(help="A folder of recorded scores (.npz), in place of any model: no weights needed.")
    ] = None,
    device: Device = "cpu",
    seed: Annotated[int, typer.Option(help="Of a sample of documents.")] = 0,
    seeds: Annotated[
        int | None, typer.Option(help="Fine-tune on the study's task and its control, so many runs each.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of each run. Default: those of the paper.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="At the first step. Default: that of the paper; a small model may need more.")
    ] = None,
    task: Annotated[str, typer.Option(help="Which of the study's tasks to fine-tune on. Default: the first.")] = "",
    most: Annotated[int | None, typer.Option(min=1, help="Train on a random sample of so many examples.")] = None,
    select: Annotated[
        str, typer.Option(help="The split on which an epoch is chosen: validation or test.")
    ] = "validation",
    batch_tokens: BatchTokens = None,
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:
    """Measure what a paper measured, and write its figures and one's own side by side."""
    from headscope.studies import STUDIES

    if recorded is not None:
        if seeds is not None:
            raise HeadscopeError("recorded scores need no fine-tuning; give --recorded or --seeds, not both.")
        _recorded(name, recorded, out)
        return
    from headscope.studies.run import study as run
    from headscope.studies.sheet import show

    corpora = {}
    for one in corpus or []:
        table, parted, path = one.partition("=")
        if not (table and parted and path):
            raise HeadscopeError(f"--corpus {one} names no file; write TABLE=PATH, such as treebank=wsj.conllu.")
        corpora[table] = Path(path).expanduser()
    with show_progress() as progress:
        made = run(
            name, model, data, out, corpora=corpora, plan=plan_of(None, None, None, batch_tokens), device=device,
            seed=seed, seeds=seeds, epochs=epochs, learning_rate=learning_rate, task=task, most=most, select=select,
            trust_remote_code=trust_remote_code, resume=resume, progress=progress,
        )  # fmt: skip
    show(STUDIES[name], made.findings, made.tables, console)
    sheet, folder = escape(str(made.folder / f"{name}.md")), escape(str(made.folder))
    console.print(f"\nRead [bold]{sheet}[/]; {len(made.files)} files in {folder}.", soft_wrap=True)


def _recorded(name: str, folder: Path, out: Path) -> None:
    from headscope.studies import STUDIES
    from headscope.studies.recorded import recorded, show

    with show_progress() as progress:
        models, written = recorded(name, folder, out, progress=progress)
    show(STUDIES[name], models, console)
    console.print(f"\nRead [bold]{escape(str(out / f'{name}.md'))}[/]; {len(written)} files in {escape(str(out))}.",
                  soft_wrap=True)  # fmt: skip
