"""Work in other processes: results in order, workers replaced without loss, an interrupt heard once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from geoedge.processes import in_processes


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers):
    assert list(in_processes(divmod, [(k, 3) for k in range(9)], workers)) == [divmod(k, 3) for k in range(9)]


def test_workers_leave_the_interrupt_to_their_parent():
    for blocked in in_processes(signal.pthread_sigmask, [(signal.SIG_BLOCK, [])] * 4, 2):
        assert signal.SIGINT in blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


GROWING = """
import builtins, time
from geoedge.processes import in_processes

def hoard(k):
    builtins.__dict__.setdefault("hoard", []).append(bytearray(400_000_000))
    builtins.hoard[-1][::4096] = b"x" * len(builtins.hoard[-1][::4096])
    time.sleep(1.3)
    return k

if __name__ == "__main__":
    assert list(in_processes(hoard, [(k,) for k in range(5)], 2)) == list(range(5))
"""


@pytest.mark.slow
def test_workers_that_grow_are_replaced_without_losing_a_run(tmp_path):
    # where warnings are errors, as here, the pool's own warning would otherwise stop the pool for ever
    script = tmp_path / "growing.py"
    script.write_text(GROWING)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], timeout=120, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


INTERRUPTED = """
import os, signal, sys, threading, time
from geoedge.processes import in_processes

if __name__ == "__main__":
    threading.Timer(float(sys.argv[1]), os.killpg, (0, signal.SIGINT)).start()
    try:
        list(in_processes(time.sleep, [(60,), (60,)], 2))
    except KeyboardInterrupt:
        print("stopped")
"""


@pytest.mark.parametrize("after_s", [0.2, 0.4, 0.8])
def test_a_terminals_interrupt_is_heard_once_even_while_workers_start(tmp_path, after_s):
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, str(script), str(after_s)],
        capture_output=True,
        text=True,
        timeout=50,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")
