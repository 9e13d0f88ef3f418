#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "When the disk refuses a write, HDF5 crashes the process, though the program catches every exception of h5py. A file that is made in memory and written by Python raises an OSError."
install h5py==3.16.0 numpy==2.4.6
run <<'EOF'
import signal
import subprocess
import sys

import h5py

PROGRAM = """
import io, pathlib, resource, sys
import h5py, numpy

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # more is refused, as by a full disk
target = io.BytesIO() if sys.argv[1] == "memory" else "numbers.h5"
try:
    with h5py.File(target, "w") as file:
        file.create_dataset("numbers", data=numpy.arange(200_000.0), chunks=(1_000,))
    if sys.argv[1] == "memory":
        pathlib.Path("numbers.h5").write_bytes(target.getvalue())
except Exception as error:
    print("caught", type(error).__name__)
print("and went on")
"""


def write(target):
    """What the program prints, and the signal that ends it, if one does."""
    command = [sys.executable, "-I", "-c", PROGRAM, target]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ended = signal.Signals(-done.returncode).name if done.returncode < 0 else ""
    print(f"{target}: {', '.join(done.stdout.splitlines()) or ended}")
    return done.stdout, ended


print(f"HDF5 {h5py.version.hdf5_version}")
assert write("memory") == ("caught OSError\nand went on\n", ""), "Python does not raise the error"
printed, ended = write("file")
assert ended, "the program survives"
assert not printed, "the program goes on before it crashes"
EOF
