# The public names, listed here and nowhere else, in the groups of the reference. `__init__.py` loads each of them when
# it is first asked for.

# look
from .attention_maps import attend as attend
from .commands.atlas.request import atlas as atlas
from .commands.draw.request import draw as draw
from .commands.explore.request import explore as explore
from .commands.profile.request import profile as profile
from .heads import head as head
from .view.table_frames import to_frame as to_frame
from .view.top_heads import top_heads as top_heads

# measure
from .capture.model.model import Model as Model
from .capture.open.loading import load as load
from .commands.align.request import align as align
from .commands.ledger.request import ledger as ledger
from .commands.measure.request import measure as measure
from .commands.measure.request import measure_shard as measure_shard
from .commands.merge.request import merge as merge
from .commands.patterns.request import label_maps as label_maps
from .commands.patterns.request import patterns as patterns
from .commands.probe.request import probe as probe
from .commands.rerun.request import rerun as rerun
from .commands.study.request import study as study
from .commands.study.request import study_recorded as study_recorded
from .corpora.corpus import Corpus as Corpus
from .corpora.corpus import read as read
from .corpora.document import Document as Document
from .corpora.document import Link as Link
from .corpora.document import Span as Span
from .heads import read_table as read_table
from .heads import write_table as write_table
from .reducers.reducer import Reducer as Reducer
from .runner.several_runs import measure_pair as measure_pair
from .score import Score as Score

# test
from .capture.open.placebo import placebo_adapter as placebo_adapter
from .capture.open.untrained import untrained_model as untrained_model
from .commands.disable.request import measure_effects as measure_effects
from .commands.lesions.request import lesions as lesions
from .intervene.edit import disable as disable
from .view.difference import difference as difference

# change
from .commands.check.request import check as check
from .commands.compare.request import compare as compare
from .commands.export.request import export as export
from .commands.tune.request import tune as tune

# errors
from .errors import CorpusError as CorpusError
from .errors import HeadscopeError as HeadscopeError
from .errors import ModelError as ModelError
from .errors import TableError as TableError

# What is for special questions is in submodules, which are loaded when they are first asked for.
from . import analyse as analyse
from . import capture as capture
from . import corpora as corpora
from . import headlists as headlists
from . import learn as learn
from . import reducers as reducers
from . import runner as runner
from . import studies as studies
from . import view as view

__version__: str
