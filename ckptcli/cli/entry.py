"""Where the process begins: an interrupt ends it quietly while the command is still being loaded.

Invariant: nothing is imported here before it can be interrupted.
"""


def main() -> None:
    """Run the command line and exit; see `ckptcli.cli.main`."""
    try:
        from ckptcli.cli.main import main as run

        run()
    except KeyboardInterrupt:
        import sys

        from ckptcli.exit_codes import INTERRUPTED

        sys.stderr.write("Interrupted\n")
        sys.exit(INTERRUPTED)
