"""All studies by name."""

from collections.abc import Mapping

from headscope.studies.aspects2019 import ASPECTS2019
from headscope.studies.clark2019 import CLARK2019
from headscope.studies.kovaleva2019 import KOVALEVA2019
from headscope.studies.sashida2026 import SASHIDA2026
from headscope.studies.study import Study
from headscope.studies.zhao2020 import ZHAO2020

STUDIES: Mapping[str, Study] = {
    "clark2019": CLARK2019,
    "zhao2020": ZHAO2020,
    "kovaleva2019": KOVALEVA2019,
    "aspects2019": ASPECTS2019,
    "sashida2026": SASHIDA2026,
}
"""All studies by name."""
