"""Plans for programs of the engine: what a pass costs, and schedules that its tape can run."""
