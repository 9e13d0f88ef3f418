"""The request classes of all commands."""

from headscope.commands.align.request import Align
from headscope.commands.atlas.request import Atlas
from headscope.commands.check.request import TypedCheck
from headscope.commands.compare.request import Compare
from headscope.commands.disable.request import Disable
from headscope.commands.draw.request import Draw
from headscope.commands.explore.request import Explore
from headscope.commands.export.request import TypedExport
from headscope.commands.ledger.request import Ledger
from headscope.commands.lesions.request import Lesions
from headscope.commands.list.request import List
from headscope.commands.measure.request import TypedMeasure
from headscope.commands.merge.request import Merge
from headscope.commands.patterns.request import TypedPatterns
from headscope.commands.probe.request import Probe
from headscope.commands.profile.request import Profile
from headscope.commands.rerun.request import Rerun
from headscope.commands.study.request import TypedStudy
from headscope.commands.tune.request import TypedTune

COMMANDS = (
    Atlas,
    Profile,
    Explore,
    Draw,
    TypedTune,
    TypedMeasure,
    Merge,
    Compare,
    Disable,
    Lesions,
    Ledger,
    Align,
    Probe,
    TypedPatterns,
    TypedCheck,
    TypedExport,
    Rerun,
    TypedStudy,
    List,
)
"""The request classes of all commands, in the order in which users need them.

The examples of `measure` and `compare` read the folder that the example of `tune` writes.
"""
