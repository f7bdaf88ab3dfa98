"""One language model on one task: prompts, parser, episode, solvers, engines. Importing it needs numpy alone.

>>> from statetrack import task
>>> from statetrack.asking import Rules, dialogue, play
>>> episode = play(dialogue(task("track_the_stat.mode"), Rules(), sample=0), lambda messages: "[mode: 85]")
>>> episode.right, episode.status
(11, 'wrong')
"""

from statetrack.asking.answers import Form, form
from statetrack.asking.asked import Asked, ask
from statetrack.asking.dialogue import Dialogue, Turn, dialogue
from statetrack.asking.episode import Episode, Message, Reply, Request, play
from statetrack.asking.metrics import results, summary
from statetrack.asking.prompts import Question, description, question
from statetrack.asking.rules import Rules
from statetrack.asking.solvers import SOLVERS, Solver, solver
from statetrack.asking.tokens import Tokens, estimate

__all__ = [
    "SOLVERS", "Asked", "Dialogue", "Episode", "Form", "Message", "Question", "Reply", "Request", "Rules", "Solver",
    "Tokens", "Turn", "ask", "description", "dialogue", "estimate", "form", "play", "question", "results", "solver",
    "summary",
]  # fmt: skip
