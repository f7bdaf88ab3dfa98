"""One language model on one task: prompts, parser, episode, solvers, engines. Importing it needs numpy alone.

>>> from statetrack import task
>>> from statetrack.ask import Rules, dialogue, play
>>> episode = play(dialogue(task("track_the_stat.mode"), Rules(), sample=0), lambda messages: "[mode: 85]")
>>> episode.right, episode.status
(11, 'wrong')
"""

from statetrack.ask.answers import Form, form
from statetrack.ask.dialogue import Dialogue, Turn, dialogue
from statetrack.ask.episode import Episode, Message, Reply, Request, play
from statetrack.ask.metrics import results, summary
from statetrack.ask.prompts import Question, description, question
from statetrack.ask.rules import Rules
from statetrack.ask.solvers import SOLVERS, Solver, solver
from statetrack.ask.tokens import Tokens, estimate

__all__ = [
    "SOLVERS", "Dialogue", "Episode", "Form", "Message", "Question", "Reply", "Request", "Rules", "Solver", "Tokens",
    "Turn", "description", "dialogue", "estimate", "form", "play", "question", "results", "solver", "summary",
]  # fmt: skip
