"""tools/planted: bugs that cannot be planted are named; the first test that fails is read off ctest's lines."""

import os
import tempfile
import unittest

import program

planted = program.load("planted")

RUN = """\
Test project /tree/build
    Start 1: kv.put
1/3 Test #1: kv.put ...............   Passed    0.02 sec
    Start 3: kv.add
2/3 Test #3: kv.add ...............***Skipped   0.01 sec
    Start 2: kv.erase
3/3 Test #2: kv.erase .............***Failed    0.02 sec
The following tests FAILED:
\t  2 - kv.erase (Failed)
"""


class Planted(unittest.TestCase):
    def test_a_text_that_is_not_there_once_is_named(self):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "a.cc"), "w", encoding="utf-8") as f:
                f.write("one\ntwo\ntwo\n")
            def why(text, file="a.cc"):
                return planted.misplaced(root, "kv", {"name": "bug", "file": file, "from": text})
            self.assertIsNone(why("one"))
            self.assertEqual(why("two"), "kv.bug: its text is 2 times in a.cc")
            self.assertEqual(why("three"), "kv.bug: its text is 0 times in a.cc")
            self.assertIn("No such file", why("one", "b.cc"))

    def test_the_first_failure_is_named(self):
        self.assertEqual(planted.FAILED.search(RUN).group(1), "kv.erase")
        self.assertIsNone(planted.FAILED.search(RUN.replace("***Failed", "   Passed")))
        self.assertEqual(planted.FAILED.search(RUN.replace("***Failed", "Subprocess aborted***Exception:")).group(1), "kv.erase")

    def test_a_pattern_that_ctest_cannot_read_chooses_no_tests(self):
        for area, spec in planted.areas(os.path.join(planted.ROOT, "tests/planted")).items():
            self.assertNotIn("(?", spec["tests"], area)

    def test_bugs_of_the_tree_have_names_and_losses(self):
        for area, spec in planted.areas(os.path.join(planted.ROOT, "tests/planted")).items():
            names = [b["name"] for b in spec["bug"]]
            self.assertEqual(len(names), len(set(names)), area)
            for b in spec["bug"]:
                self.assertNotEqual(b["from"], b["to"])
                self.assertTrue(b["loses"], b["name"])


if __name__ == "__main__":
    unittest.main()
