"""Why a trained model stops tracking state.

import statetrack as st
found = st.diagnose("txc", model, trained=64)       # on any trained model: plain data, see results/diagnosis.py
print(*found["sentences"], sep="\\n")
"""

from statetrack.diagnosis.examine import diagnose
from statetrack.diagnosis.folder import diagnose_folder

__all__ = ["diagnose", "diagnose_folder"]
