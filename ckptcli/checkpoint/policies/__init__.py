"""Which values of a region may be saved: one policy, or one family of them, a file.

`registry` finds them. What is imported here is the Python face; a policy needs no line of it to be
written on the command line.
"""

from __future__ import annotations

from ckptcli.checkpoint.policies.base import (
    OFFLOAD as OFFLOAD,
    Answer as Answer,
    BasePolicy as BasePolicy,
    Policy as Policy,
    ValueInfo as ValueInfo,
)
from ckptcli.checkpoint.policies.both import save_from_both_policies as save_from_both_policies
from ckptcli.checkpoint.policies.compute_bound import (
    compute_bound_saveable as compute_bound_saveable,
)
from ckptcli.checkpoint.policies.dots import (
    dots_saveable as dots_saveable,
    dots_with_no_batch_dims_saveable as dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims as offload_dot_with_no_batch_dims,
)
from ckptcli.checkpoint.policies.everything import everything_saveable as everything_saveable
from ckptcli.checkpoint.policies.names import (
    save_and_offload_only_these_names as save_and_offload_only_these_names,
    save_any_names_but_these as save_any_names_but_these,
    save_only_these_names as save_only_these_names,
)
from ckptcli.checkpoint.policies.nothing import nothing_saveable as nothing_saveable
from ckptcli.checkpoint.policies.own import described as described
from ckptcli.checkpoint.policies.registry import (
    parse_policy as parse_policy,
    register as register,
)
