"""What to keep and what to compute again under a memory budget: problems and plans as plain data.

A problem (`problems/`) is read from JSON or built by whoever has a graph. A planner (`planners/`)
drafts a plan for it; `play/` plays every draft against the rules of its problem, and the cost and
the peak of a plan are what that gives. Nothing here holds an array or knows the engine.
"""
