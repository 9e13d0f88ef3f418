"""`headscope align`: which heads of the cross-attention are the word alignment."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import CORPUS, MEASURED, MODEL, OUTPUT, argument, option
from headscope.cli.terminal import LOADING, console, show_progress


def align(
    model: options.Model,
    pairs: Annotated[
        Path,
        argument("PAIRS", "Word-aligned pairs, such as pairs.txt: one a line, as 'source words ||| target words ||| "
                 "0-0 1-2 3p4', sure links with - and possible ones with p, counted from 0; or a folder of them."),
    ],
    limit: options.Limit = None,
    sample: options.Sample = None,
    seed: Annotated[
        int,
        option(CORPUS, "Random seed of --sample and of the untrained model, such as 7. Default: 0.", metavar="N"),
    ] = 0,
    source: Annotated[
        str | None,
        option(MODEL, "Language of the source words, for a tokenizer of several languages, such as eng_Latn. Default: "
               "that of the tokenizer.", metavar="LANGUAGE"),
    ] = None,
    target: Annotated[
        str | None,
        option(MODEL, "Language of the target words, such as fra_Latn. Default: that of the tokenizer.",
               metavar="LANGUAGE"),
    ] = None,
    trust_remote_code: options.Trust = False,
    step: Annotated[
        str,
        option(MEASURED, "Step of the decoder whose heads generation_config.json gets, such as reading: that which "
               "predicts a word, or that which reads it. Both are measured. Default: predicting.", metavar="STEP"),
    ] = "predicting",
    top: Annotated[
        int | None,
        option(MEASURED, "Write so many heads to generation_config.json, such as 4, the best first. Default: all that "
               "stand out.", metavar="N"),
    ] = None,
    permutations: Annotated[
        int | None,
        option(MEASURED, "Number of permutations for the p-values, such as 1999; 0 skips them. Default: 999.",
               metavar="N", min=0),
    ] = None,
    out: Annotated[
        Path,
        option(OUTPUT, "Folder to write, such as aligned. Default: headscope-alignment.", "--out", "-o",
               metavar="FOLDER"),
    ] = Path("headscope-alignment"),
    resume: options.Resume = False,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
) -> None:  # fmt: skip
    """Find the heads of an encoder-decoder that are the word alignment: where a word is translated, they look at it.

    Heads are chosen on one half of the pairs and scored on the other, beside rules that know the places of words alone
    and the same model untrained. The folder holds heads.nc, a head table; untrained.nc; alignment.csv, with a row for
    each head and step; and generation_config.json, with the heads that stand out as alignment_heads, as Whisper has
    them, beside the settings of the model.
    """
    from headscope.jobs.align_arguments import MANIFEST, SETTINGS, check_handing_on, check_settings, read_pairs
    from headscope.jobs.arguments import check_model, check_output_folder

    check_handing_on(step, top)
    check_model(model)
    read_pairs(pairs, limit=limit, sample=sample, seed=seed)
    check_output_folder(out, "the alignment", MANIFEST)
    check_settings(out)
    with show_progress() as progress:
        progress(LOADING, 0, 0)
        from headscope.jobs.align import measure_alignment
        from headscope.view.shortlist import print_shortlist
        from headscope.view.terminal import print_table

        table = measure_alignment(
            model, pairs, out, limit=limit, sample=sample, seed=seed, source=source, target=target, step=step,
            top=top, permutations=permutations, batch_tokens=batch_tokens, device=device,
            trust_remote_code=trust_remote_code, resume=resume, progress=progress,
        )  # fmt: skip
    print_table(table, console)
    print_shortlist(table, console)
    console.print(f"\nAll heads are in {escape(str(out / 'alignment.csv'))}.", soft_wrap=True, highlight=False)
    if (out / SETTINGS).exists():
        console.print(
            f"The heads that stand out where words are {'predicted' if step == 'predicting' else 'read'} are the "
            f"alignment_heads in {escape(str(out / SETTINGS))}.",
            soft_wrap=True, highlight=False,
        )  # fmt: skip
    else:
        console.print(f"No head stands out at the step {step}, so {SETTINGS} is not written.", highlight=False)
