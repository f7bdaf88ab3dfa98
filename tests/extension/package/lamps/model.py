"""The model: one line that says what it is. It needs no torch, so that lists and predictions need none."""

from statetrack.models import ModelEntry

GLOW = ModelEntry("glow", "lamps.network:Glow", "a tanh RNN", {"width": 32}, family="unrestricted", width="width")
