"""The command line: arguments in, tests run, tables and files out. No statistics here.

Only what ``--help`` needs is imported at the top of these modules; NumPy, DuckDB and the tests are
imported by the commands that use them.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_SECONDS_UNTIL_AGAIN = 0.01
received: list[int] = []  # the signal that ends this process


def start() -> None:
    """Run the command as a process of its own.

    A signal ends it, even while it imports, with the exit code 128 plus the signal's number and
    without a traceback; temporary data are removed on the way out.
    """
    unseen: list[int] = []

    def stop(number: int, _: object) -> None:
        if not received:
            received.append(number)
        elif not unseen:  # a second one would interrupt the removal of temporary data
            return
        unseen.clear()
        raise KeyboardInterrupt

    def send_again(ignored: sys.UnraisableHookArgs) -> None:
        """Send the signal again if it came inside a finalizer or a callback, where nobody sees it.

        The compiler has many of them, and may fail because of it before the signal comes again.
        """
        if not (issubclass(ignored.exc_type, KeyboardInterrupt) and received):
            sys.__unraisablehook__(ignored)
            return
        unseen.append(received[0])
        again = threading.Timer(_SECONDS_UNTIL_AGAIN, _signal_main_thread, received)
        again.daemon = True
        again.start()

    sys.unraisablehook = send_again
    for one in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
        if signal.getsignal(one) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(one, stop)
    try:
        _fill_closed_streams()
        from fairperm.cli.main import main

        main()
    finally:
        unseen.clear()
        if received:
            from fairperm.cli.terminal import print_error

            print_error("fairperm: interrupted")
            sys.exit(128 + received[0])


def _signal_main_thread(number: int) -> None:
    """Send a signal to the thread that may wait: one to the process would not wake it for sure."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:  # Windows
        signal.raise_signal(number)


def _fill_closed_streams() -> None:
    """Open the null device where a standard stream is closed: no file may take its number."""
    sys.stderr = sys.stderr or io.StringIO()
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
