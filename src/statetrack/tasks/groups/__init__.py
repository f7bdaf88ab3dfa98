"""Permutation groups: construction, element IDs, composition, algebra."""

from statetrack.tasks.groups.build import group
from statetrack.tasks.groups.group import Group
from statetrack.tasks.groups.names import canonical, catalogue, family, looks_like_group, usual_name
from statetrack.tasks.groups.selectors import selector

__all__ = ["Group", "canonical", "catalogue", "family", "group", "looks_like_group", "selector", "usual_name"]
