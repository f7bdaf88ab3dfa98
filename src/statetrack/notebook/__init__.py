"""What is held at a Python prompt: a folder of results, a sweep that gives one, figures inline.

It stands above reports and training, so that it can put them together; those are shown by `statetrack.display`.

import statetrack as st
folder = st.load("results")
folder.where(task="txc", length=64).to_pandas()
"""

from statetrack.notebook.folder import ResultsFolder, load
from statetrack.notebook.sweeping import sweep

__all__ = ["ResultsFolder", "load", "sweep"]
