"""Work in other processes: results in order, workers replaced without loss, an interrupt heard once."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from geoedge.processes import in_processes


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers):
    assert list(in_processes(divmod, [(k, 3) for k in range(9)], workers)) == [divmod(k, 3) for k in range(9)]


def test_who_waits_is_asked_whether_the_next_call_has_ended():
    # asked once each where joblib's pool no longer tells that it gives up: then look again at `_wait` in
    # geoedge.processes before pyproject.toml lets in another joblib
    asked = []

    def ended(number):
        asked.append((number, threading.get_ident()))
        return len(asked) % 3 == 0

    calls = [(k, 3) for k in range(4)]
    assert list(in_processes(divmod, calls, 2, ended)) == [divmod(*each) for each in calls]
    assert asked == [(k, threading.get_ident()) for k in range(4) for _ in range(3)]
    assert list(in_processes(divmod, calls, 1, ended)) == [divmod(*each) for each in calls]
    assert len(asked) == 12  # in this process nothing goes on while one waits


@pytest.mark.parametrize(
    ("function", "calls", "error"),
    [
        (divmod, [(1, 1), (1, 0)], ZeroDivisionError),
        (signal.raise_signal, [(signal.SIGKILL,), (signal.SIGKILL,)], TerminatedWorkerError),
    ],
)
def test_calls_that_fail_or_take_their_worker_along_are_not_waited_for(function, calls, error):
    with pytest.raises(error):
        list(in_processes(function, calls, 2, lambda number: function is divmod and number == 0))


def test_who_closes_the_iterator_stops_the_work_without_a_word(recwarn, tmp_path):
    done = tmp_path / "done"
    slow = f"import pathlib, time; time.sleep(60.0); pathlib.Path({str(done)!r}).touch()"
    results = in_processes(exec, [("",), (slow,), (slow,)], 2)
    assert next(results) is None
    results.close()
    assert not done.exists()  # nobody has waited for it
    assert not recwarn


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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it runs behind it ignore this
    threading.Timer(float(sys.argv[1]), os.killpg, (0, signal.SIGINT)).start()
    looks = {"looking": lambda number: False, "waiting": None}[sys.argv[2]]
    try:
        list(in_processes(time.sleep, [(60,), (60,)], 2, looks))
    except KeyboardInterrupt:
        print("stopped")
"""


@pytest.mark.parametrize("how", ["looking", "waiting"])
@pytest.mark.parametrize("after_s", [0.2, 0.4, 0.8])
def test_a_terminals_interrupt_is_heard_once_even_while_workers_start(tmp_path, after_s, how):
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, str(script), str(after_s), how],
        capture_output=True,
        text=True,
        timeout=50,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")
