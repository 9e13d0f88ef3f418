# What `headscope.capture` gives, loaded by `__init__.py` when it is first asked for.
from .forward.head_edit import Edit as Edit
from .forward.head_edit import EditedLayer as EditedLayer
from .forward.head_edit import HeadGradient as HeadGradient
from .forward.interface import Capture as Capture
from .forward.outputs import Outputs as Outputs
from .model.model import Model as Model
from .open.loading import load as load
from .open.untrained import untrained_model as untrained_model
from .passes.stream import Plan as Plan
from .passes.stream import Portion as Portion
from .passes.stream import Stream as Stream
from .rows.attention import Attention as Attention
from .tokens.batch import Batch as Batch
from .tokens.batch import Tokens as Tokens
