"""One profile of a workload: a memory pass for each strategy, then interleaved timed rounds.

Time and memory are measured in separate passes: a timed pass carries no ledger and no tracer.
"""
