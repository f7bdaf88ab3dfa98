"""What a task is as algebra: its monoid, its groups, its circuit class."""
