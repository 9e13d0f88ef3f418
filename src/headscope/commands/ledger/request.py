"""The request of `headscope ledger`."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.commands.function import make_function
from headscope.commands.model_options import ModelOptions
from headscope.commands.option import MEASURED, argument, option, output_folder
from headscope.commands.option_groups import LanguageOptions
from headscope.commands.output import Contents, Drawing, Listing, Resumable, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request

if TYPE_CHECKING:
    from headscope.corpora.prompts import Prompts


class Ledger(ModelOptions, LanguageOptions, Drawing, Listing, Resumable, Request[HeadTable], command="ledger"):
    """Measure what each head reads while the model writes: system text, each document, question and its own text.

    The model writes a text behind each prompt, greedily. The same text is then read with the documents in other orders,
    so that each document is once in each slot, and what is read for its place is told from what is read for what it
    says. The folder holds ledger.nc, a head table; ledger.csv, with a row for each head and part; content.csv, with
    what each head reads of the document with the answer; and tokens.csv, with each token of the first 20 prompts.

    Returns:
        The head table that is in ``ledger.nc``.
    """

    contents = Contents("the ledger", "ledger.json", ("ledger",))
    usage = (
        "headscope ledger smollm2 prompts.jsonl -o ledger",
        "headscope ledger ./my-model prompts.jsonl --chat --tokens 64 -o ledger",
    )
    example = (
        'documents = ["Ann lives in Bern.", "Eve lives in Rome."]',
        'prompts = [{"documents": documents, "question": "Where does Eve live?"}]',
        'table = headscope.ledger("my-decoder", prompts)',
    )
    prompts: "str | Path | Prompts | Sequence[Mapping[str, Any]]" = argument(
        "PROMPTS",
        'JSON Lines of prompts, such as prompts.jsonl: each an object with "documents" and "question", and if there '
        'are any "system", "answer" (read in place of a generated text) and "gold" (the number of the document with '
        "the answer).",
        kw_only=False,
        typed=Path,
        python="Or a list of such objects.",
    )
    out: str | Path | None = output_folder("ledger", "headscope-ledger", default=None, kw_only=False)
    tokens: int = option(
        MEASURED,
        "Largest number of tokens that the model generates for a prompt without an answer, such as 64.",
        default=32,
        at_least=1,
        basic=True,
    )
    chat: bool = option(
        MEASURED,
        "Lay the chat template of the tokenizer around prompts.",
        default=False,
        unset="plain labels, such as Document 1",
        basic=True,
    )

    @cached_property
    def source(self) -> "Prompts":
        """The prompts.

        Raises:
            CorpusError: The file is missing, or a line is malformed.
        """
        from headscope.corpora.prompts import read_prompts

        return read_prompts(self.prompts)

    def check(self, progress: Progress) -> None:
        """Raise an error for a model, prompts or a folder that cannot be used."""
        self.check_model()
        check_folder(self)
        _ = self.source


ledger = make_function(Ledger)
