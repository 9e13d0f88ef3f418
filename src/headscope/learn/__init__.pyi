# What `headscope.learn` gives, loaded by `__init__.py` when it is first asked for.
from .control import make_control as make_control
from .task import Task as Task
from .tasks import read_task as read_task
