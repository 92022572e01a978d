"""tools/validate-memory: its traces, the parameters that it gives the other simulators, its verdicts and refusals. No checkout is needed."""

import os
import subprocess
import tempfile
import types
import unittest

import program

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/validate-memory")
PROGRAM = os.environ.get("STELE_LAB")  # build/stele-lab


tool = program.load("validate-memory")

# tCK 0.625 ns, CL 22, CWL 16, a burst of 4.
RULES = [("bank", "activate", "read", 13.75, 1), ("bank", "activate", "precharge", 32.5, 1), ("bank", "activate", "activate", 46.25, 1),
         ("bank", "precharge", "activate", 13.75, 1), ("bank", "read", "precharge", 7.5, 1), ("bank", "write", "precharge", 27.5, 1),
         ("channel", "read", "read", 2.5, 1), ("bank_group", "read", "read", 5, 1), ("other_ranks", "read", "read", 3.125, 1),
         ("rank", "write", "read", 15, 1), ("bank_group", "write", "read", 20, 1), ("rank", "activate", "activate", 2.5, 1),
         ("bank_group", "activate", "activate", 5, 1), ("rank", "activate", "activate", 21.26, 4), ("rank", "precharge", "refresh", 13.75, 1)]
VALUES = {"clock_ns": 0.625, "read_latency_ns": 16.25, "write_latency_ns": 12.5, "refresh_interval_ns": 7800, "refresh_time_ns": 350,
          "ranks": 2, "bank_groups": 4, "banks": 4, "channels": 1, "row_bytes": 8192, "capacity_bytes": 1 << 34,
          "mapping": "row-rank-bank-column-bank_group-channel", "read_queue_entries": 64, "write_queue_entries": 64,
          "write_drain_from": 0.8, "write_drain_to": 0.3,
          "timing": [dict(zip(("level", "preceding", "following", "latency_ns", "window"), rule)) for rule in RULES]}


def lines_of(pattern, load, requests=4000):
    return [(int(address, 16), word, int(cycle)) for address, word, cycle in
            (line.split() for line in tool.trace(tool.Memory(VALUES), pattern, load, requests, seed=1))]


class Traces(unittest.TestCase):
    def test_are_the_same_each_time_and_other_ones_with_another_seed(self):
        memory = tool.Memory(VALUES)
        one, again, other = (list(tool.trace(memory, "random reads", "50 %", 100, seed)) for seed in (1, 1, 2))
        self.assertEqual(one, again)
        self.assertNotEqual(one, other)

    def test_come_at_the_rate_of_their_load(self):
        for pattern, cycles in (("random reads", 4), ("reads of one bank", 74)):
            for load, share in (("20 %", 0.2), ("70 %", 0.7)):
                last = lines_of(pattern, load)[-1][2]
                self.assertAlmostEqual(last / (4000 * cycles / share), 1, delta=0.06)
        self.assertEqual([cycle for _, _, cycle in lines_of("read stream", "saturated", 5)], [0, 1, 2, 3, 4])

    def test_have_the_addresses_and_writes_of_their_pattern(self):
        memory = tool.Memory(VALUES)
        stream = [address for address, _, _ in lines_of("read stream", "20 %", 50)]
        self.assertEqual(stream, [stream[0] + 64 * i for i in range(50)])
        in_row = memory.fields()["row"][0]
        conflicts = [address for address, _, _ in lines_of("reads of one bank", "20 %", 50)]
        self.assertEqual({address % (1 << in_row) for address in conflicts}, {0})
        self.assertEqual(len(set(conflicts)), 50)
        writes = sum(word == "WRITE" for _, word, _ in lines_of("random, 1/3 writes", "20 %"))
        self.assertAlmostEqual(writes / 4000, 1 / 3, delta=0.03)


class Configurations(unittest.TestCase):
    def test_dramsim3_has_the_parameters_in_cycles(self):
        written = tool.dramsim3_configuration(tool.Memory(VALUES)).splitlines()
        for line in ("CL = 22", "CWL = 16", "tRCD = 22", "tRAS = 52", "tRTP = 12", "tWR = 24", "tRFC = 560", "tREFI = 12480", "tFAW = 34",
                     "tCCD_L = 8", "tRRD_L = 8", "tWTR_S = 4", "tWTR_L = 12", "tRTRS = 1", "rows = 65536", "columns = 1024",
                     "address_mapping = rorabacobgch", "trans_queue_size = 32"):
            self.assertIn(line, written)

    def test_ramulator_has_each_rule_and_those_of_its_precharge_of_all_banks(self):
        rules = tool.ramulator_rules(tool.Memory(VALUES))
        read, write, refresh, single, all_banks = [3], [4], [7], [1], [2]
        for rule in ([1, read, read, 5, 1, True], [1, [0], [0], 34, 4, False], [3, write, single, 44, 1, False],
                     [1, write, all_banks, 44, 1, False], [1, all_banks, [0], 22, 1, False], [1, all_banks, refresh, 22, 1, False],
                     [1, refresh, tool.RAMULATOR_COMMANDS["any"], 560, 1, False]):
            self.assertIn(rule, rules)

    def test_a_machine_without_a_rule_of_ddr4_is_refused(self):
        values = dict(VALUES, timing=[rule for rule in VALUES["timing"] if rule["window"] == 1])
        with self.assertRaisesRegex(tool.Failure, "no rule rank: activate -> activate"):
            tool.dramsim3_configuration(tool.Memory(values))


class Verdicts(unittest.TestCase):
    def judged(self, load, ours, theirs, bandwidth=5.12):
        of = {name: {"read_latency": latency, "write_latency": 0, "bandwidth": bandwidth, "activates": 1}
              for name, latency in (("stele", ours), ("dramsim3", theirs))}
        return tool.judge(tool.Memory(VALUES), {"pattern": "random reads", "load": load, "of": of})

    def test_five_per_cent_below_saturation_ten_at_it(self):
        for load, ours, bandwidth, outside in (("20 %", 104.9, 5.12, 0), ("20 %", 105.1, 5.12, 1), ("20 %", 94.9, 5.12, 1),
                                               ("20 %", 105.1, 4.9, 0), ("saturated", 109.9, 20, 0), ("saturated", 110.1, 20, 1)):
            self.assertEqual(len(self.judged(load, ours, 100, bandwidth)["outside"]), outside, (load, ours, bandwidth))
        self.assertEqual(self.judged("20 %", 106, 100)["outside"], ["read latency +6.0 % of DRAMsim3's"])


class Refusals(unittest.TestCase):
    def refused(self, *words):
        done = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_say_what_is_missing(self):
        self.assertIn("give --dramsim3 DIR, --ramulator2 DIR or both", self.refused())
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn(f"--ramulator2 {folder} is no checkout of Ramulator 2", self.refused("--ramulator2", folder))
            os.mkdir(os.path.join(folder, "src"))
            self.assertIn("there is no program /nowhere/stele-lab", self.refused("--dramsim3", folder, "--program", "/nowhere/stele-lab"))


@unittest.skipUnless(PROGRAM, "STELE_LAB names no stele-lab")
class Ours(unittest.TestCase):
    def test_the_program_runs_the_traces_and_places_lines_as_the_tool_does(self):
        memory = tool.read_memory(PROGRAM, "ddr4-3200")
        with tempfile.TemporaryDirectory() as folder:
            setting = types.SimpleNamespace(program=PROGRAM, machine="ddr4-3200", out=folder, requests=300, seed=1)
            conflicts, stream = (tool.run_row(memory, setting, ["stele"], pattern, load)["of"]["stele"]
                                 for pattern, load in (("reads of one bank", "20 %"), ("read stream", "saturated")))
        self.assertGreaterEqual(conflicts["activates"], 1000)  # each read opens another row of its bank
        self.assertLess(stream["activates"], 100)
        self.assertGreater(stream["bandwidth"], 0.8 * tool.LINE / (memory.burst * memory.clock))


if __name__ == "__main__":
    unittest.main()
