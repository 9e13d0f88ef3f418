"""The options that several jobs have in common, turned into a model, documents and a plan."""

from headscope.reducers import add_offsets_and_classes as add_offsets_and_classes
from headscope.runner import Plan


def make_plan(max_tokens: int | None, cut: bool | None, pair_tokens: int | None, batch_tokens: int | None) -> Plan:
    """The plan of these options; a size that is None has the default of `Plan`."""
    return Plan(
        max_tokens=max_tokens,
        cut=cut,
        pair_tokens=Plan.pair_tokens if pair_tokens is None else pair_tokens,
        batch_tokens=Plan.batch_tokens if batch_tokens is None else batch_tokens,
    )
