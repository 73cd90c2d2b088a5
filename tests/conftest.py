"""What holds for every test."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and children would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
