"""The harness's tasks: a group's word problem, scored by log-likelihood or by reading what the model generates.

The harness makes one object for each YAML file and gives it the file's fields, with `--metadata` under `metadata`.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import Task, TaskConfig
from lm_eval.filters import build_filter_ensemble

from statetrack.asking import Question, question
from statetrack.asking.answers import INTEGER, Form, left_open, without_reasoning
from statetrack.asking.prompts import SEED_PROMPT
from statetrack.errors import BadInput
from statetrack.integrations.lm_eval import published
from statetrack.integrations.lm_eval.context import model_of_run, too_long
from statetrack.integrations.lm_eval.definitions import LOGGER, group_of
from statetrack.integrations.lm_eval.documents import Document, Generated
from statetrack.integrations.lm_eval.metrics import UNANSWERED, aggregations, names
from statetrack.integrations.lm_eval.options import HarnessOptions
from statetrack.integrations.lm_eval.served import guard_replies, is_served, never_came, thinks
from statetrack.secrets import guard, remember_named, scrubbed
from statetrack.tasks.groups import usual_name
from statetrack.tasks.groups.task import GroupTask
from statetrack.version import __version__

log = logging.getLogger(LOGGER)
MOST_LINES = 10  # of the harness's table that are read without help


class Composition(Task):
    """The permutation benchmark's own task: right is a target that greedy decoding would give, token by token.

    With a prompt that ends in "Answer:" the model is scored on " 117". Beware that " 1" counts as right when the model
    would go on to " 117": `CompositionGen` does not have this weakness. And it is not for models that think before they
    answer: they are scored on what they would say at once.
    """

    OUTPUT_TYPE = "loglikelihood"

    def __init__(self, config: Mapping[str, Any]) -> None:
        guard()  # the harness logs what a server says, and a server may repeat the key that it was sent
        remember_named(config["metadata"])
        self.VERSION = config["metadata"]["version"]
        self.options = HarnessOptions.read(config["metadata"], self.generates)
        self.group = group_of(config["task"])
        over = "generators" if self.options.style == "generators" else "elements"
        self.composition = GroupTask(group=self.group, over=over)
        self.documents, self.findings = self._rows()
        self.shot_seed = 0
        self.left_out: dict[int, int] = {}
        self.first_row = 0
        self.served = False
        self.opened: dict[int, str] = {}  # of a document whose prompt begins to think: the mark
        # The harness's own __init__ would download data and warn of a configuration that is still empty.
        self._instances: list[Instance] | None = None
        self._filters = [build_filter_ensemble("none", [["take_first", None]])]
        self._config = TaskConfig(
            task=config["task"],
            test_split="test",
            output_type=self.OUTPUT_TYPE,
            generation_kwargs=self.generation(),
            metadata={  # what goes into the results; the model's arguments, which the harness mixes in, do not
                "version": self.VERSION,
                "for_thinking_models": self.generates,
                "statetrack": __version__,
                "options": asdict(self.options),
                "findings": self.findings,
            },
        )

    @property
    def generates(self) -> bool:
        return bool(self.OUTPUT_TYPE == "generate_until")

    def generation(self) -> dict[str, Any] | None:
        """The harness's arguments for generating."""
        return None

    def _rows(self) -> tuple[Sequence[Document], list[str]]:
        """The documents, generated or read from a local copy, and what the audit of a copy found."""
        options = self.options
        if options.data is None:
            return Generated(self.composition, options.per_length, options.seed, options.asked), []
        return published.read(Path(options.data), self.group, options.per_length, options.labels, options.asked)

    def has_training_docs(self) -> bool:
        return False

    def has_validation_docs(self) -> bool:
        return False

    def has_test_docs(self) -> bool:
        return True

    def test_docs(self) -> Sequence[Document]:
        return self.documents

    def doc_iterator(self, **which: Any) -> Iterator[tuple[int, Document]]:
        """The documents of this process with their numbers, less those that do not fit into the model's context."""
        return ((number, doc) for number, doc in super().doc_iterator(**which) if number not in self.left_out)

    def question(self, doc: Document, shots: int = 0) -> Question:
        """The prompt and the answer. The benchmark's own prompt takes the row as it is; `ask` makes the others."""
        if self.options.plain and not shots:
            prompt = SEED_PROMPT.format(group=usual_name(self.group), sequence=doc["input_sequence"], examples="")
            return Question(prompt, doc["target"], Form(kind=INTEGER))
        if self.options.data is not None:
            raise BadInput("published rows have IDs of their own: num_fewshot needs generated ones")
        row = [int(element) for element in doc["input_sequence"].split()]
        return question(self.composition, row, self.options.rules(shots), self.shot_seed)

    def doc_to_text(self, doc: Document) -> str:
        return self.question(doc).prompt

    def doc_to_target(self, doc: Document) -> str:
        return self.question(doc).target

    def set_fewshot_seed(self, seed: int | None = None) -> None:
        super().set_fewshot_seed(seed)
        self.shot_seed = seed or 0

    def fewshot_context(
        self,
        doc: Document,
        num_fewshot: int,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        fewshot_as_multiturn: bool = False,
        chat_template: Callable[..., str] | None = None,
        gen_prefix: str | None = None,
    ) -> str:
        """The prompt, with `--num_fewshot` worked examples in it, bare or as a chat."""
        prompt = self.question(doc, num_fewshot).prompt
        if not (apply_chat_template and chat_template):
            return f"{system_instruction}\n\n{prompt}" if system_instruction else prompt
        system = [{"role": "system", "content": system_instruction}] if system_instruction else []
        return chat_template([*system, {"role": "user", "content": prompt}], add_generation_prompt=True)

    def build_all_requests(self, **arguments: Any) -> None:
        """Make the requests and leave out those that do not fit, which the harness would cut; the result would not say.

        They are never cached: the harness's key does not know of `--metadata`, and making them is cheap.
        """
        self.left_out, self.opened = {}, {}
        model = model_of_run()
        self.served = is_served(model)
        guard_replies(model)
        if thinks(model):
            self._warn_of_thinking()
        super().build_all_requests(**{**arguments, "cache_requests": False, "rewrite_requests_cache": False})
        instances = self._instances or []
        self.left_out = too_long(instances)
        if self.left_out:
            self._report(instances)
        fitting = [instance for instance in instances if instance.doc_id not in self.left_out]
        self._instances, self.first_row = fitting, fitting[0].doc["row"]

    def _warn_of_thinking(self) -> None:
        """Say what becomes of a model that thinks first, where this task does not let it."""
        instead = f"""take {self.task_name.removesuffix("_gen")}_gen with --metadata '{{"regime": "thinking"}}'"""
        if not self.generates:
            log.warning("%s scores log-likelihoods and is not for models that think before they answer, as this one"
                        " does; %s", self.task_name, instead)  # fmt: skip
        elif not self.options.rules(0).thinking:
            log.warning("%s ends a reply at the end of its line, so that a model that thinks first, as this one does,"
                        " does not get to its answer; %s", self.task_name, instead)  # fmt: skip

    def _report(self, instances: Sequence[Instance]) -> None:
        lengths = [instance.doc["sequence_length"] for instance in instances if instance.doc_id in self.left_out]
        said = (
            f"{self.task_name}: {len(lengths)} of {len(instances)} prompts do not fit into the model's context: lengths"
            f" {min(lengths)} to {max(lengths)}, the longest of {max(self.left_out.values())} tokens"
        )
        if len(lengths) == len(instances):
            raise BadInput(f"{said}; none is left to ask")
        log.warning("%s; they are left out, and a length that loses all its rows reports -1", said)

    def construct_requests(self, doc: Document, ctx: str, **more: Any) -> Instance:
        chat = more.pop("apply_chat_template", False)
        self.opened[doc["row"]] = left_open(str(getattr(ctx, "prompt", ctx)))
        more.pop("chat_template", None)
        return Instance(
            request_type=self.OUTPUT_TYPE, doc=doc, arguments=(ctx, self.continuation(doc, chat)), idx=0, **more
        )

    def continuation(self, doc: Document, chat: bool) -> Any:
        """The target after one space; a chat template has its own white space before a reply."""
        target = self.doc_to_target(doc)
        return target if chat else f" {target}"

    def apply_filters(self) -> list[Instance] | None:
        """As the harness does, once replies that repeat a key are cleaned: it writes them into its samples."""
        for instance in self._instances or []:
            instance.resps = scrubbed(instance.resps)
        return super().apply_filters()

    def process_results(self, doc: Document, results: Sequence[Any]) -> dict[str, Any]:
        """What one document tells every metric."""
        right = self.score(doc, results[0])
        for_each_length = dict.fromkeys(names(self.generates, self.options.asked), (doc["sequence_length"], right))
        return {
            **for_each_length,
            "acc": right,
            "chance": 1 / self.composition.outputs,
            "too_long": len(self.left_out) if doc["row"] == self.first_row else 0,
        }

    def score(self, doc: Document, result: tuple[float, bool]) -> float:
        """1 for a right answer."""
        return float(result[1])

    def aggregation(self) -> dict[str, Callable[[list[Any]], Any]]:
        if len(self.options.asked) > MOST_LINES:
            _say_how_to_read()
        return aggregations(self.generates, self.options.asked)

    def higher_is_better(self) -> dict[str, bool]:
        return {name: True for name in names(self.generates, self.options.asked) if name == "acc" or name.isdigit()}


@functools.cache
def _say_how_to_read() -> None:
    """The harness sorts its table by the metrics' names as text; only what asks fewer lengths can make it short."""
    log.info("the harness's table has the lengths in the order of text, 10, 100, 105, ...; `statetrack results FOLDER`,"
             """ with that of --output_path, prints those that were asked, in order, and --metadata '{"lengths":"""
             """ "5,50,500"}' asks some alone""")  # fmt: skip


class CompositionGen(Composition):
    """The same question, answered in text: what is generated up to the end of the line is read as a whole.

    So the answer is terminated: "11" is not right where "117" was asked for, nor the other way round.
    """

    OUTPUT_TYPE = "generate_until"

    def generation(self) -> dict[str, Any]:
        rules = self.options.rules(0)
        form, degree = self.question(self.documents[0]).form, self.composition.group_object.degree
        # In one-line or cycle notation, with one token per character and up to two brackets per point.
        longest = len(form.write(" ".join(map(str, range(degree))))) + degree if form.degree else 0
        return {
            "until": [] if rules.thinking else ["\n"],
            "do_sample": False,
            "max_gen_toks": self.options.room or max(rules.most_tokens or 0, longest),
        }

    def continuation(self, doc: Document, chat: bool) -> dict[str, Any]:
        return dict(self._config.generation_kwargs)

    def process_results(self, doc: Document, results: Sequence[Any]) -> dict[str, Any]:
        """What one document tells every metric; one that a server left without an answer is in no mean."""
        if self.served and never_came(results[0]):
            return {UNANSWERED: 1}
        unread = self.read(doc, results[0]) is None
        return {**super().process_results(doc, results), "violations": float(unread), UNANSWERED: 0}

    def score(self, doc: Document, result: str) -> float:  # type: ignore[override]
        asked = self.question(doc)
        return float(self.read(doc, result) == asked.form.read(asked.target))

    def read(self, doc: Document, reply: str) -> Any:
        """The value of a reply; None where it has none in the right format, or none after what it thought."""
        rules, form = self.options.rules(0), self.question(doc).form
        read = form.read_leniently if rules.parser == "lenient" else form.read
        whole = self.opened.get(doc["row"], "") + reply
        answer = without_reasoning(whole)
        return read(answer, last=rules.thinking or answer != whole)
