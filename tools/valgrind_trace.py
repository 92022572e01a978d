"""Instructions, loads and stores of a program as valgrind's lackey traces them, and the program's symbols.

For tools/stalls and tools/commit-counts. A traced line is b"I ADDRESS,SIZE\n", b" L ...", b" S ..." or b" M ..." (load,
store, both). Needs valgrind, nm, objdump and addr2line, which tools/deps --deep installs.
"""

import bisect
import os
import shutil
import subprocess
import sys

LOADED_AT = 0x108000  # where valgrind maps a position-independent program, less its first page
INSTRUCTION, LOAD, STORE, MODIFY = b"I ", b" L", b" S", b" M"
FENCE_BYTES = 3  # of the instruction sfence


def instruction_line(address, size):
    """The traced line of the instruction that symbols place at `address`."""
    return b"I  %08x,%d\n" % (address + LOADED_AT, size)


def trace(command, environment=None):
    """Yields the traced lines of `command`, whose output is dropped; ends the program when the caller reads no further.

    What the program says on its standard error is printed when it fails.
    """
    if not shutil.which("valgrind"):
        sys.exit("valgrind is missing: tools/deps --deep installs it")
    read_end, write_end = os.pipe()
    valgrind = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-fd={write_end}", *command]
    run = subprocess.Popen(valgrind, pass_fds=[write_end], env=environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE)
    os.close(write_end)
    try:
        with os.fdopen(read_end, "rb", buffering=1 << 20) as lines:
            for line in lines:
                if line[:2] in (INSTRUCTION, LOAD, STORE, MODIFY):
                    yield line
        if run.wait() != 0:
            sys.exit(f"{command[0]}: {run.stderr.read().decode(errors='replace').strip() or 'failed under valgrind'}")
    finally:
        run.kill()
        run.wait()
        run.stderr.close()


def command_output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


class Symbols:
    def __init__(self, program):
        self.program = program
        listed = (line.split(" ", 2) for line in command_output("nm", "-C", "--defined-only", program).splitlines())
        known = sorted((int(parts[0], 16), parts[2]) for parts in listed if len(parts) == 3 and parts[1] in "tTwWuU")
        self.starts, self.names = [start for start, _ in known], [name for _, name in known]
        code = command_output("objdump", "-d", "--no-show-raw-insn", program)
        self.fences = {int(line.split(":")[0], 16) for line in code.splitlines() if line.endswith("sfence")}

    def function(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        return self.names[at].split("(")[0][-70:] if at >= 0 else "?"

    def line(self, address):
        return command_output("addr2line", "-Cfpse", self.program, hex(address)).strip()[:150]
