"""The request of `headscope profile`."""

from pathlib import Path

from headscope.commands.function import make_function
from headscope.commands.model_options import ModelOptions
from headscope.commands.option import CORPUS, option, output_folder
from headscope.commands.output import Contents, Resumable, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request

TABLE = "profile"
"""The name of the head table in the folder."""

MEASURED_TABLES = ("repeats", "untrained-repeats", "needles", "untrained-needles")
"""The tables that are measured for the roles: for each corpus, of the model and of the untrained model."""

REPEATS, NEEDLES = 80, 100
"""The default numbers of texts in the two generated corpora."""


class Profile(ModelOptions, Resumable, Request[HeadTable], command="profile"):
    """Say what each head of a decoder does: sink, previous token, induction, duplicate, copying, retrieval, streaming.

    The model reads generated texts: random tokens that are repeated, and facts that are asked for. A head has a role if
    its score passes a threshold, and beats rules without a model and every head of the same model untrained. The folder
    holds profile.csv, with a row for each head, profile.nc, a head table, and profile.json.

    Returns:
        The head table that is in ``profile.nc``: ``head_role`` is the main role of each head, ``head_role_score`` its
        score for each role.
    """

    contents = Contents("the profile", "profile.json", MEASURED_TABLES, ("profile.nc", "profile.csv"))
    usage = ("headscope profile smollm2 -o profile", "headscope profile ./my-llama --repeats 60 --needles 40 -o look")
    example = ('table = headscope.profile("my-decoder", repeats=10, needles=4)', 'table["head_role"]')
    out: str | Path | None = output_folder("profile", "headscope-profile", default=None, kw_only=False)
    repeats: int = option(CORPUS, "Texts of random tokens that are repeated, such as 60.", default=REPEATS, at_least=1)
    needles: int = option(
        CORPUS, "Texts with facts that are asked for, such as 40, on which retrieval is measured.", default=NEEDLES,
        at_least=1,
    )  # fmt: skip
    seed: int = option(CORPUS, "Random seed of the texts and of the untrained model, such as 7.", default=0)

    def check(self, progress: Progress) -> None:
        """Raise an error for a path without a model, or for a folder that cannot be used."""
        self.check_model()
        check_folder(self)


profile = make_function(Profile)
