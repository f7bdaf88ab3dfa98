"""Permutation composition for lm-evaluation-harness: `lm_eval --tasks permutation_groups`.

The harness wants one YAML file per task. `definitions` writes them when the package is built (see hatch_build.py),
each a name and the class that is the task (`task.Composition`, `task.CompositionGen`). Importing it needs no lm-eval.
"""
