"""A package that adds to statetrack a task, a model, a diagnostic and a figure."""
