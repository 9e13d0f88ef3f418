"""The arguments of a study, checked before anything is imported that takes seconds. No torch here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope.corpora import read
from headscope.errors import HeadscopeError
from headscope.jobs.evaluations import find_evaluation
from headscope.studies import names as study_names

PROBE_TABLE = "probe"
"""The table of a study that `headscope probe` writes."""


def check_study(name: str) -> None:
    """Refuse a study that there is not.

    Raises:
        HeadscopeError: it is none of `headscope.studies.STUDIES`.
    """
    study_names.check_name(name)


def check_study_inputs(name: str, data: Path, corpora: Mapping[str, str | Path], options: Mapping[str, Any]) -> None:
    """Refuse corpora that a study cannot be made of, and options that it cannot be tuned with.

    Args:
        name: of a study that there is.
        data: the folder that holds the corpora.
        corpora: files or folders in place of those in `data`, by the names of the study's measurements.
        options: the fields of `headscope.studies.tuning.TuningOptions`.

    Raises:
        CorpusError: a corpus is not there or is of no known format, or the study does not measure it.
        HeadscopeError: the study fine-tunes nothing, or nothing can be trained with an option.
    """
    # The studies bring what they draw with; torch would take seconds more.
    from headscope.studies import STUDIES
    from headscope.studies.locate import locate
    from headscope.studies.tuning import TuningOptions, plan_tuning

    study, folder = STUDIES[name], data.expanduser()
    given = {table: Path(corpus).expanduser() for table, corpus in corpora.items()}
    plan_tuning(name, study, TuningOptions(**options), folder, given)
    for table, corpus in locate(study, folder, given).items():
        if table in study.lesions:
            find_evaluation(f"{study.lesions[table].task}{corpus}")
        else:
            read(corpus)


def check_probes_of_study(probes: object, study: str) -> None:
    """Refuse probes for a study that says nothing of them; None is none.

    Raises:
        HeadscopeError: the study has no claims about probes.
    """
    # The studies bring what they draw with.
    from headscope.studies import STUDIES

    if probes is not None and not any(PROBE_TABLE in claim.on for claim in STUDIES[study].claims):
        raise HeadscopeError(f"the study {study} says nothing of probes; leave out --probe.")


def check_lesions_of_study(
    name: str, corpora: Mapping[str, object], limits: Mapping[str, int] | None, start: str | None
) -> None:
    """Refuse limits of lesions that a study does not have, and what else says nothing of its lesions.

    Args:
        name: of a study that there is.
        corpora: files, folders or texts in memory, by the names of the study's measurements and lesions.
        limits: of the examples, by the names of the study's lesions; None is none.
        start: the token from which a model predicts the first one of a text; None is none.

    Raises:
        HeadscopeError: the study disables no sets of heads, or none of this name; too few examples are taken, or they
            are in memory.
    """
    from headscope.studies import STUDIES

    lesions = STUDIES[name].lesions
    if (limits or start is not None) and not lesions:
        given = "--limit" if limits else "--start"
        raise HeadscopeError(f"the study {name} disables no sets of heads; leave out {given}.")
    for table, limit in (limits or {}).items():
        if table not in lesions:
            raise HeadscopeError(f"the study {name} has no lesions {table!r} to limit; name {' or '.join(lesions)}.")
        if limit < 2:
            raise HeadscopeError(f"{limit} examples say nothing about heads; take 2 or more of {table}.")
    for table in lesions:
        if table in corpora and not isinstance(corpora[table], str | Path):
            raise HeadscopeError(f"the examples of {table} are read from a file or folder; name one.")
