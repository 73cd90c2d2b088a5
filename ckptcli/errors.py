"""Every error that the program raises on purpose, with the exit code it ends in.

    CkptError                        1  anything below, caught as one
    ├── UsageError                   2  the command line or a file it names is wrong
    │   ├── UnknownNameError         2  no such strategy, workload, backend, level
    │   ├── GraphFileError           2  a graph file that cannot be read as a program
    │   ├── ProblemFileError         2  a file that cannot be read as a planning problem
    │   ├── MissingLibraryError      2  a library that an option needs is not installed
    │   ├── ConfigError              2  a burn.toml named by the user that is absent or wrong
    │   └── RecordFileError          2  a saved record that cannot be read back
    ├── LogFileError                 1  a log file that cannot be opened or written
    ├── OutputFileError              1  an export that cannot be written
    ├── EngineError                  1  a program on the Python face that cannot run
    │   ├── ShapeError               1  operands that do not fit
    │   ├── DtypeError               1  operands of different dtypes
    │   ├── OperandError             1  an operand that is not a tensor
    │   ├── DeviceError              1  operands on different devices or strategies; no autodiff
    │   ├── NotALeafError            1  a gradient asked to be kept where none is
    │   ├── UntrackedLeafError       1  backward() where nothing leads to a parameter
    │   ├── ConsumedNodeError        1  backward() through what an earlier backward() used up
    │   ├── CheckpointError          1  the checkpointer is in a state that its rules exclude
    │   ├── BindingError             1  a placeholder without data, or data for something else
    │   ├── InactiveOutputError      1  a gradient of what does not depend on the input
    │   └── HistoryTooLongError      1  a copied history of checkpoints beyond its limit
    ├── PlanError                    1  a plan that its problem excludes
    ├── ReplayError                  1  a program that is not the same calls in every pass
    ├── ProgramError                 1  a user's own program that failed while running
    └── OutOfMemoryError             1  a network that cannot fit, refused or failed

A message is one sentence that names the thing, the value and the place, then what to do.
"""

from __future__ import annotations

from collections.abc import Iterable

from ckptcli.exit_codes import FAILED, USAGE


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The name in `known` that the user most likely meant, if one is near."""
    import difflib  # on first use: a help text has no use for it

    matches = difflib.get_close_matches(name.lower(), list(known), n=1)
    return matches[0] if matches else None


class CkptError(Exception):
    """Base of all errors raised on purpose. `hint` is what to do next, printed on its own line."""

    exit_code = FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}; {self.hint}"


class UsageError(CkptError):
    """A wrong command line, or a wrong file that it names."""

    exit_code = USAGE


class OutputError(UsageError):
    """What a program of the user's gives has no loss: seen while it runs, but no failure of it."""


class UnknownNameError(UsageError):
    """A name that no registry has; the hint names the nearest one that exists, or all of them.

    `listed_by` is the command that lists them, where they are too many for a hint.
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], listed_by: str | None = None
    ) -> None:
        names = sorted(set(known))
        nearest = nearest_name(name, names)
        every = f"`{listed_by}` lists all" if listed_by else f"known: {', '.join(names)}"
        super().__init__(
            f"unknown {kind} `{name}`", f"did you mean `{nearest}`?" if nearest else every
        )


class GraphFileError(UsageError):
    """A graph file that cannot be read as a program; names file, line and op index."""


class ProblemFileError(UsageError):
    """A file that cannot be read as a planning problem; names the file and the entry."""


class MissingLibraryError(UsageError):
    """A library that an option needs and that is not installed; the hint is how to install it."""


class ConfigError(UsageError):
    """A configuration file named by the user that is absent, malformed or has a wrong value."""


class RecordFileError(UsageError):
    """A saved record that cannot be read back."""


class LogFileError(CkptError):
    """A log file, named by a burn.toml, that cannot be opened or written."""


class OutputFileError(CkptError):
    """An exported file that cannot be written; it is what it was before."""


class EngineError(CkptError):
    """A program on the Python face that cannot run."""


class ShapeError(EngineError):
    """Operands whose shapes do not fit the op."""


class DtypeError(EngineError):
    """Operands of different dtypes, or a dtype that the engine does not have."""


class OperandError(EngineError):
    """An operand that is not a tensor, or data that none can be made of."""


class DeviceError(EngineError):
    """Operands on different devices or strategies, or autodiff asked of a device without it."""


class NotALeafError(EngineError):
    """`require_grad()` on an intermediate value."""


class UntrackedLeafError(EngineError):
    """`backward()` on a leaf that needs no gradient."""


class ConsumedNodeError(EngineError):
    """`backward()` through a node that an earlier backward pass used up."""


class CheckpointError(EngineError):
    """The checkpointer reached a state that its rules exclude: a defect, never the user's fault."""


class BindingError(EngineError):
    """A placeholder without data or bound twice, or a binding of what is no placeholder."""


class InactiveOutputError(EngineError):
    """A gradient of an output that does not depend on the input, as far as the graph shows."""


class HistoryTooLongError(EngineError):
    """A history of checkpoints that would be copied beyond its limit; nothing was copied."""


class PlanError(CkptError):
    """A plan with an action that its problem excludes: a planner's defect, or another's file."""


class ReplayError(CkptError):
    """A program that is not the same list of calls in every pass."""


class ProgramError(CkptError):
    """A user's own program that failed while running; names its line."""


class OutOfMemoryError(CkptError):
    """A network that does not fit in memory."""


class UntrackedBackwardWarning(UserWarning):
    """`backward()` on an op output that no gradient flows to: it succeeds with no gradients."""
