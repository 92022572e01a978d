"""tools/planted: bugs that cannot be planted are named; the first test that fails is read off ctest's lines."""

import contextlib
import io
import os
import subprocess
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


class recorder:
    """A tree that notes what it is asked for."""

    def __init__(self, compiles=True, by=None):
        self.did, self.compiles, self.by = [], compiles, by

    def plant(self, bug):
        self.did.append("plant " + bug["name"])

    def restore(self, bug):
        self.did.append("restore " + bug["name"])

    def build(self, targets):
        self.did.append("build " + " ".join(targets))
        return self.compiles

    def first_failure(self, tests, says=""):
        self.says = says
        self.did.append("test " + tests)
        return self.by


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

    def test_each_place_of_a_bug_of_several_edits_is_looked_for(self):
        with tempfile.TemporaryDirectory() as root:
            for name in ("a.cc", "b.cc"):
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write("one\n")
            def why(*texts):
                edits = [{"file": file, "from": text, "to": "x"} for file, text in zip(("a.cc", "b.cc"), texts)]
                return planted.misplaced(root, "kv", {"name": "bug", "edits": edits})
            self.assertIsNone(why("one", "one"))
            self.assertEqual(why("one", "two"), "kv.bug: its text is 0 times in b.cc")

    def test_a_bug_is_planted_at_each_place_and_restored(self):
        with tempfile.TemporaryDirectory() as folder:
            def content():
                with open(os.path.join(folder, "a.cc"), encoding="utf-8") as f:
                    return f.read()
            with open(os.path.join(folder, "a.cc"), "w", encoding="utf-8") as f:
                f.write("one\ntwo\n")
            for command in (("init", "--quiet"), ("add", "a.cc")):
                subprocess.run(("git",) + command, cwd=folder, check=True)
            tree = planted.Tree.__new__(planted.Tree)
            tree.folder = folder
            bug = {"edits": [{"file": "a.cc", "from": "one", "to": "1"}, {"file": "a.cc", "from": "two", "to": "2"}]}
            tree.plant(bug)
            self.assertEqual(content(), "1\n2\n")
            tree.restore(bug)
            self.assertEqual(content(), "one\ntwo\n")

    def test_a_bug_has_its_own_tests_or_those_of_its_area(self):
        spec = {"tests": "^kv", "targets": ["t"]}
        tree = recorder()
        planted.judge(tree, "kv", spec, {"name": "one"})
        planted.judge(tree, "kv", spec, {"name": "other", "tests": "^fuzz", "targets": ["u", "v"], "says": "a failed"})
        self.assertEqual(tree.says, "a failed")
        self.assertEqual(tree.did, ["plant one", "build t", "test ^kv", "restore one",
                                    "plant other", "build u v", "test ^fuzz", "restore other"])

    def test_seconds_of_tests_are_apart_from_those_of_the_build(self):
        row = planted.judge(recorder(by="kv.put"), "kv", {"tests": "^kv", "targets": ["t"]}, {"name": "one"})
        self.assertEqual(row["by"], "kv.put")
        self.assertEqual({k for k in row if k.endswith("seconds")}, {"build_seconds", "test_seconds", "test_processor_seconds"})
        row = planted.judge(recorder(compiles=False), "kv", {"tests": "^kv", "targets": ["t"]}, {"name": "one"})
        self.assertEqual(row["by"], "(does not compile)")

    def test_the_table_has_what_was_judged_in_the_order_of_the_file(self):
        bugs = [{"name": n, "row": "names", "loses": f"{n} is lost", "oracle": "the fuzzer"} for n in ("one", "two", "three")]
        rows = [{"area": "mends", "name": "two", "by": None, "test_seconds": 3.0, "test_processor_seconds": 2.0},
                {"area": "mends", "name": "one", "by": "fuzz.kv", "test_seconds": 0.25, "test_processor_seconds": 0.1}]
        self.assertEqual(planted.table_of({"mends": {"bug": bugs}}, rows).split("\n")[2:],
                         ["| names | one is lost | the fuzzer | `fuzz.kv` | 0.2 | 0.1 |",
                          "| names | two is lost | the fuzzer | **not found** | 3.0 | 2.0 |"])

    def test_bugs_that_had_tests_are_not_in_the_score_of_all(self):
        rows = [{"area": a, "by": by} for a, by in (("kv", None), ("kv", "t"), ("mends", "t"), ("kv", "(does not compile)"))]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            planted.print_scores(rows, {"mends"})
        self.assertEqual(out.getvalue(), "kv: 1 of 2 found\nmends: 1 of 1 found\nall: 1 of 2 found\n")

    def test_the_first_failure_is_named(self):
        self.assertEqual(planted.FAILED.search(RUN).group(1), "kv.erase")
        self.assertIsNone(planted.FAILED.search(RUN.replace("***Failed", "   Passed")))
        self.assertEqual(planted.FAILED.search(RUN.replace("***Failed", "Subprocess aborted***Exception:")).group(1), "kv.erase")

    def test_a_pattern_that_ctest_cannot_read_chooses_no_tests(self):
        for area, spec in planted.areas(os.path.join(planted.ROOT, "tests/planted")).items():
            for of in (spec, *spec["bug"]):
                self.assertNotIn("(?", of.get("tests", ""), area)

    def test_a_regular_expression_without_tests_is_no_bug_that_is_not_found(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "build"))
            with open(os.path.join(folder, "build/CTestTestfile.cmake"), "w", encoding="utf-8") as f:
                f.write("add_test(kv.put true)\nadd_test(kv.erase false)\nadd_test(tx.end sh -c \"echo assertion failed: a; false\")\n")
            tree = planted.Tree.__new__(planted.Tree)
            tree.folder, tree.jobs, tree.limit = folder, "1", 60
            self.assertIsNone(tree.first_failure("put"))
            self.assertEqual(tree.first_failure("kv"), "kv.erase")
            self.assertEqual(tree.first_failure("tx", "assertion failed: a"), "tx.end")
            self.assertIsNone(tree.first_failure("tx", "assertion failed: b"), "another assertion")
            # A test leaves a file, and writes down where.
            with open(os.path.join(folder, "build/CTestTestfile.cmake"), "a", encoding="utf-8") as f:
                f.write('add_test(leaves sh -c "touch $TMPDIR/left && echo $TMPDIR >where")\n')
            self.assertIsNone(tree.first_failure("leaves"))
            with open(os.path.join(folder, "build/where"), encoding="utf-8") as f:
                self.assertFalse(os.path.exists(f.read().strip()))
            with self.assertRaisesRegex(SystemExit, "no test is called kw"):
                tree.first_failure("kw")

    def test_bugs_of_the_tree_have_names_and_losses(self):
        for area, spec in planted.areas(os.path.join(planted.ROOT, "tests/planted")).items():
            names = [b["name"] for b in spec["bug"]]
            self.assertEqual(len(names), len(set(names)), area)
            for b in spec["bug"]:
                for edit in planted.edits_of(b):
                    self.assertNotEqual(edit["from"], edit["to"])
                self.assertTrue(b["loses"], b["name"])
                self.assertTrue(planted.of(spec, b, "tests") and planted.of(spec, b, "targets"), b["name"])
                self.assertEqual("row" in b and "oracle" in b, spec.get("known", False), b["name"])


if __name__ == "__main__":
    unittest.main()
