# The public names, listed here and nowhere else. `__init__.py` loads each of them when it is first asked for.
from .analyse.agreement import consistencies as consistencies
from .analyse.agreement import consistency as consistency
from .analyse.compare import compare_variable as compare_variable
from .analyse.regression import add_regression as add_regression
from .analyse.replicate import add_replication as add_replication
from .analyse.report import add_intervals as add_intervals
from .analyse.report import add_report as add_report
from .analyse.report import assess as assess
from .analyse.run_effects import summarize_effects as summarize_effects
from .analyse.significance import add_significance as add_significance
from .capture.loading import load as load
from .capture.model import Model as Model
from .capture.model import untrained_model as untrained_model
from .corpora.corpus import read as read
from .corpora.document import Document as Document
from .corpora.document import Link as Link
from .corpora.document import Span as Span
from .errors import HeadscopeError as HeadscopeError
from .heads import head as head
from .heads import read_table as read_table
from .heads import write_table as write_table
from .intervene.edit import disable as disable
from .jobs.atlas import atlas as atlas
from .jobs.compare import compare as compare
from .jobs.disable import measure_effects as measure_effects
from .jobs.measure import measure as measure
from .jobs.study import study as study
from .jobs.study_recorded import study_recorded as study_recorded
from .jobs.tune import tune as tune
from .learn.control import make_control as make_control
from .learn.tasks import read_task as read_task
from .runner.runs import measure_pair as measure_pair
from .runner.runs import measure_runs as measure_runs
from .view.frames import to_frame as to_frame

__version__: str
