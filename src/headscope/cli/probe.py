"""`headscope probe`: what the attention of all heads together says of the links between words."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import CORPUS, MEASURED, OUTPUT, argument, option
from headscope.cli.terminal import LOADING, console, show_progress


def probe(
    model: options.Model,
    treebank: Annotated[
        str,
        argument("TREEBANK", "File or folder with links, such as en_ewt-ud-train.conllu (`headscope list corpora`), or "
                 "grammar:COUNT for generated sentences."),
    ],
    test: Annotated[
        str | None,
        option(CORPUS, "Texts on which the probes are tested, such as en_ewt-ud-dev.conllu. Default: for each seed "
               "another fifth of the texts of TREEBANK.", metavar="CORPUS"),
    ] = None,
    format: options.Format = None,
    links: Annotated[
        str | None,
        option(MEASURED, "Links that the probes find, such as coreference: dependency, role, coreference, scope or "
               "pattern. Default: the first of these that TREEBANK has.", metavar="KIND"),
    ] = None,
    limit: options.Limit = None,
    sample: options.Sample = None,
    max_tokens: Annotated[
        int | None,
        option(CORPUS, "Longest text in tokens, such as 128; longer ones are left out. Default: 512.", metavar="N",
               min=3),
    ] = None,
    words: Annotated[
        Path | None,
        option(MEASURED, "File of word vectors, such as glove.6B.100d.txt, plain or .gz. Default: the model's own "
               "input embeddings, in 100 principal components.", metavar="FILE"),
    ] = None,
    seeds: Annotated[
        int, option(MEASURED, "How many times probes are trained, such as 5. Default: 3.", metavar="N", min=1)
    ] = 3,
    decode: Annotated[
        str,
        option(MEASURED, "How words are chosen, such as tree: the best candidate of each word (word), or the best tree "
               "of each sentence (tree). Default: word.", metavar="WAY"),
    ] = "word",
    without: Annotated[
        list[str] | None,
        option(MEASURED, "Leave out a part that takes time, such as control: untrained (the untrained model), control "
               "(the control task), code-length, or structural (the structural probe); may be repeated. Default: none.",
               metavar="PART"),
    ] = None,
    rank: Annotated[
        int, option(MEASURED, "Rank of the structural probe, such as 32. Default: 64.", metavar="N", min=1)
    ] = 64,
    trust_remote_code: options.Trust = False,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as probe. Default: headscope-probe.", "--out", "-o",
                     metavar="FOLDER")
    ] = Path("headscope-probe"),
    resume: options.Resume = False,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
) -> None:  # fmt: skip
    """Train probes that find the links between words from the attention of all heads.

    The folder holds probe.csv, with a row for each probe and relation; lengths.csv, by the length of links; probe.nc,
    a head table with the weight of each head; and figures/. Each accuracy stands beside its interval, what
    right-branching and a probe of words alone reach, and what a control task reaches.
    """
    from headscope.jobs.arguments import check_corpora, check_model, check_output_folder, check_probing

    check_probing(links, seeds, decode, rank, without or ())
    check_model(model)
    check_corpora(treebank, test, format=format)
    check_output_folder(out, "the probes", "probe.json")
    with show_progress() as progress:
        progress(LOADING, 0, 0)
        from headscope.jobs import probe as job
        from headscope.view.probes import print_probes

        table = job.probe(
            model, treebank, out, test=test, format=format, links=links, limit=limit, sample=sample, words=words,
            seeds=seeds, decode=decode, without=without or (), rank=rank, max_tokens=max_tokens,
            batch_tokens=batch_tokens, device=device, trust_remote_code=trust_remote_code, resume=resume,
            progress=progress,
        )  # fmt: skip
    print_probes(table, console)
    console.print(f"\nAll relations are in {escape(str(out / 'probe.csv'))}.", soft_wrap=True)
