"""What each family of models can do with a task, and whose theorem says so."""
