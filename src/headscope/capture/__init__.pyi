# What `headscope.capture` gives, loaded by `__init__.py` when it is first asked for.
from .attention import Attention as Attention
from .batch import Batch as Batch
from .batch import Tokens as Tokens
from .edit import Edit as Edit
from .edit import EditedLayer as EditedLayer
from .edit import HeadGradient as HeadGradient
from .interface import Capture as Capture
from .loading import load as load
from .model import Model as Model
from .model import untrained_model as untrained_model
from .outputs import Outputs as Outputs
from .stream import Plan as Plan
from .stream import Portion as Portion
from .stream import Stream as Stream
