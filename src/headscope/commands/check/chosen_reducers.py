"""The choice of the reducers that measure the scores by which heads are checked."""

from collections.abc import Iterable, Iterator, Sequence

from headscope.commands.check.recorded_call import RecordedCall
from headscope.corpora import CorpusSummary
from headscope.errors import HeadscopeError
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer
from headscope.reducers.reducer_names import is_own, split_settings
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import resolve_reducers


def choose_reducers(
    variables: Iterable[str], call: RecordedCall, own: Sequence[str | Reducer], summary: CorpusSummary, name: str
) -> list[Reducer]:
    """Choose reducers for a corpus that measure the given variables, without permutations.

    Reducers of the user are tried first, then those of the recorded call with settings, then the built-in ones.

    Args:
        variables: The names of the scores.
        call: The recorded settings of the table.
        own: The reducers that the user gives.
        summary: The summary of the corpus.
        name: The name of the table in error messages.

    Raises:
        HeadscopeError: The call names a reducer of the user's own, and none is given; or no known reducer has one of
            the scores.
        CorpusError: The corpus lacks the annotation for one of the scores.
    """
    named = [reducer for reducer in call.reducers if is_own(reducer) and "(" not in reducer]
    if named and not own:
        raise HeadscopeError(
            f"{name} was measured with the reducer {named[0]!r} of your own, and code that a table names is not run "
            f"unasked; give `reducers` {named[0]}."
        )
    wanted = {*variables}
    chosen: dict[str, Reducer] = {}
    for reducer in _resolve(own, call, summary):
        measured = {score.variable for score in reducer.scores}
        if wanted & measured and reducer.name not in chosen:
            chosen[reducer.name] = with_permutations(reducer, 0)
            wanted -= measured
    for kind in REDUCERS.values():
        if wanted & {score.variable for score in kind.scores}:
            kind.check_annotation(summary)
    if wanted:
        raise HeadscopeError(
            f"no built-in reducer has the score {min(wanted)} of {name}; name your own as `reducers`, such as "
            "repetition:Repetition."
        )
    return [*chosen.values()]


def _resolve(own: Sequence[str | Reducer], call: RecordedCall, summary: CorpusSummary) -> Iterator[Reducer]:
    """Yield reducers for the corpus: the user's own, then those of the call with settings, then the built-in ones."""
    yield from resolve_reducers(own, summary) if own else ()
    for reducer in call.reducers:
        yield from resolve_reducers([reducer], summary) if split_settings(reducer)[1] is not None else ()
    for kind in REDUCERS.values():
        if kind.is_annotated(summary):
            yield kind.for_corpus(summary)
