"""tools/sanitize: what ctest's log says of each test, and which tests are left out."""

import unittest

import program

sanitize = program.load("sanitize")

LOG = """\
Start testing: Nov 27 12:00 UTC
----------------------------------------------------------
1/3 Testing: kv.put
1/3 Test: kv.put
Output:
----------------------------------------------------------
ok
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Passed.
"kv.put" end time: Nov 27 12:00 UTC
2/3 Testing: kv.erase
2/3 Test: kv.erase
Output:
----------------------------------------------------------
a.cc:1:2: runtime error: load of misaligned address
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Passed.
"kv.erase" end time: Nov 27 12:00 UTC
3/3 Testing: kv.walk
3/3 Test: kv.walk
Output:
----------------------------------------------------------
==1==ERROR: AddressSanitizer: heap-use-after-free
<end of output>
Test time =   0.10 sec
----------------------------------------------------------
Test Failed.
"""


class Sanitize(unittest.TestCase):
    def test_each_test_passes_or_reports(self):
        self.assertEqual(sanitize.outcomes_in(LOG, "asan"), {
            "kv.put": {"passed": True, "reports": []},
            "kv.erase": {"passed": True, "reports": ["undefined-behaviour sanitizer"]},
            "kv.walk": {"passed": False, "reports": ["address sanitizer"]}})

    def test_what_is_left_out_has_a_reason(self):
        self.assertEqual(sanitize.reason_left_out("asan", "Mutants.all"), sanitize.PLANTED)
        self.assertEqual(sanitize.reason_left_out("tsan", "Explore.hash"), sanitize.ONE_THREAD)
        self.assertIsNone(sanitize.reason_left_out("asan", "Explore.hash"))
        self.assertIsNone(sanitize.reason_left_out("tsan", "kv.put"))


if __name__ == "__main__":
    unittest.main()
