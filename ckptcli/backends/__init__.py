"""Array libraries behind one protocol, and the ledger of what they hold."""

from __future__ import annotations

from ckptcli.backends.registry import open_backend as open_backend
