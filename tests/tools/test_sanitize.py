"""tools/sanitize: what ctest's log says of each test, and which tests are left out."""

import unittest

import program

sanitize = program.load("sanitize")

LOG = """\
Start testing: Nov 27 12:00 UTC
----------------------------------------------------------
1/4 Testing: kv.put
1/4 Test: kv.put
Output:
----------------------------------------------------------
ok
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Passed.
"kv.put" end time: Nov 27 12:00 UTC
2/4 Testing: kv.erase
2/4 Test: kv.erase
Output:
----------------------------------------------------------
a.cc:1:2: runtime error: load of misaligned address
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Passed.
"kv.erase" end time: Nov 27 12:00 UTC
3/4 Testing: kv.walk
3/4 Test: kv.walk
Output:
----------------------------------------------------------
==1==ERROR: AddressSanitizer: heap-use-after-free
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Failed.
4/4 Testing: kv.rest
4/4 Test: kv.rest
Output:
----------------------------------------------------------
[  SKIPPED ] kv.rest (0 ms)
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Pass Reason:
Skip regular expression found in output. Regex=[\\[  SKIPPED \\]]
"kv.rest" end time: Nov 27 12:00 UTC
5/5 Testing: kv.planted
5/5 Test: kv.planted
FAILS under default
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Pass Reason:
Required regular expression found. Regex=[FAILS under default]
"kv.planted" end time: Nov 27 12:00 UTC
"""

TOGETHER = """\
[ RUN      ] kv.put
[       OK ] kv.put (1 ms)
[ RUN      ] all/kv.erase/2
[       OK ] all/kv.erase/2, where GetParam() = 2 (1 ms)
[ RUN      ] kv.rest
a.cc:1: Skipped
[  SKIPPED ] kv.rest (0 ms)
[ RUN      ] kv.walk
==1==ERROR: AddressSanitizer: heap-use-after-free
"""


class Sanitize(unittest.TestCase):
    def test_each_test_passes_or_reports(self):
        self.assertEqual(sanitize.outcomes_in(LOG, "asan"), {
            "kv.put": {"passed": True, "skipped": False, "reports": []},
            "kv.erase": {"passed": True, "skipped": False, "reports": ["undefined-behaviour sanitizer"]},
            "kv.walk": {"passed": False, "skipped": False, "reports": ["address sanitizer"]},
            "kv.rest": {"passed": True, "skipped": True, "reports": []},
            "kv.planted": {"passed": True, "skipped": False, "reports": []}})

    def test_those_of_one_process_that_have_passed_need_no_other(self):
        names = {"kv.put": "kv.put", "erase of two": "all/kv.erase/2", "kv.rest": "kv.rest", "kv.walk": "kv.walk", "kv.late": "kv.late"}
        self.assertEqual(sanitize.passed_together(names, TOGETHER), {
            "kv.put": {"passed": True, "skipped": False, "reports": []},
            "erase of two": {"passed": True, "skipped": False, "reports": []},
            "kv.rest": {"passed": True, "skipped": True, "reports": []}})

    def test_what_is_left_out_has_a_reason(self):
        self.assertEqual(sanitize.reason_left_out("asan", "share/Mutants.are_all_killed/3"), sanitize.PLANTED)
        self.assertEqual(sanitize.reason_left_out("tsan", "Explore.hash"), sanitize.ONE_THREAD)
        self.assertIsNone(sanitize.reason_left_out("asan", "Explore.hash"))
        self.assertIsNone(sanitize.reason_left_out("tsan", "kv.put"))


if __name__ == "__main__":
    unittest.main()
