"""What there is, by name: reducers, corpora, studies and tasks."""

from collections.abc import Mapping

from headscope.errors import HeadscopeError


def list_names(kind: str) -> Mapping[str, str]:
    """The names of one kind (``reducers``, ``corpora``, ``studies`` or ``tasks``) with their descriptions.

    Raises:
        HeadscopeError: there is no such kind.
    """
    # Each list is imported only when it is asked for; none of them loads torch.
    match kind:
        case "reducers":
            from headscope.reducers import names as reducers

            return reducers.NAMES
        case "corpora":
            from headscope.corpora import FORMATS

            grammar = "generated English with exact dependencies, coreference and negation (grammar:COUNT:SEED)"
            repeats = "random tokens that are repeated, for induction heads (repeats:COUNT:SEED)"
            needles = "facts in long texts and questions about them, for retrieval heads (needles:COUNT:SEED)"
            return {"grammar": grammar, "repeats": repeats, "needles": needles} | {
                name: format.description for name, format in FORMATS.items()
            }
        case "studies":
            from headscope.studies import names as studies

            return studies.NAMES
        case "tasks":
            from headscope.learn.tasks import TASKS

            return {name: task.description for name, task in TASKS.items()}
    raise HeadscopeError(f"there is no list of {kind!r}; there are reducers, corpora, studies and tasks.")
