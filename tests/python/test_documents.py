"""What the documentation shows runs, and the lab's reports become rows."""

import doctest
import json
import os
import sys
import types
import unittest

import stele
from beds import PoolCase
from stele import lab


class Documents(PoolCase):
    def run_examples(self, tests):
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        count = 0
        for test in tests:
            test.globs.update(path=self.path(f"doc{count}"), directory=self.directory)
            count += len(test.examples)
            runner.run(test)
        self.assertEqual(runner.failures, 0)
        self.assertGreater(count, 3)

    def test_docstrings(self):
        finder = doctest.DocTestFinder(exclude_empty=True)
        self.run_examples([t for module in (stele, stele.errors, stele.kv) for t in finder.find(module)])

    def test_everything_public_says_what_it_is(self):
        for owner in (stele, stele.Pool, stele.Dict, stele.List, stele.KV, stele.errors):
            for name in getattr(owner, "__all__", [n for n in dir(owner) if not n.startswith("_")]):
                self.assertTrue(getattr(owner, name).__doc__, f"{owner.__name__}.{name} has no description")

    def test_types_are_installed(self):
        files = os.listdir(os.path.dirname(stele.__file__))
        self.assertIn("py.typed", files)
        self.assertIn("__init__.pyi", files)

    def test_the_guide(self):
        name = os.path.join(os.environ["STELE_SOURCE_DIR"], "docs/guide/python.md")
        with open(name, encoding="utf-8") as file:
            text = file.read().replace("```", "")
        self.run_examples([doctest.DocTestParser().get_doctest(text, {}, "python.md", name, 0)])


COMPARED = {"limits": {"fence_ns": 2}, "rows": [{"system": "default", "tx_per_s": {"median": 5}}, {"system": "redo", "tx_per_s": {"median": 4}}]}


class Lab(PoolCase):
    def test_reports_become_rows(self):
        flat = [{"system": "default", "tx_per_s.median": 5}, {"system": "redo", "tx_per_s.median": 4}]
        with open(self.path("report"), "w") as file:
            json.dump(COMPARED, file)
        for source in (COMPARED, json.dumps(COMPARED), self.path("report")):
            self.assertEqual(lab.rows(source), flat)
        with open(self.path("report")) as file:
            self.assertEqual(lab.rows(file), flat)
        self.assertEqual(lab.rows({"states": 4, "violations": []}), [{"states": 4}])
        self.assertEqual(lab.rows({"states": 4, "violations": ["a line"]}), [{"value": "a line"}])
        with self.assertRaisesRegex(KeyError, "it has limits, rows"):
            lab.rows(COMPARED, of="mutants")

    def test_without_pandas_it_says_what_to_do(self):
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "pandas"}
        self.addCleanup(sys.modules.update, hidden)
        sys.modules["pandas"] = None
        self.addCleanup(sys.modules.pop, "pandas", None)
        with self.assertRaisesRegex(ImportError, "pip install pandas"):
            lab.frame(COMPARED)

    @unittest.skipUnless(os.environ.get("STELE_COMMAND"), "STELE_COMMAND does not name the command")
    def test_the_command_gives_frames(self):
        kept = sys.modules.get("pandas")
        self.addCleanup(lambda: sys.modules.__setitem__("pandas", kept) if kept else sys.modules.pop("pandas"))
        sys.modules["pandas"] = types.SimpleNamespace(DataFrame=list)
        rows = lab.run("compare", "--workload", "sps", "--keys", 1000, "--media", "process", "--runs", 1, "--seconds", 0.01, "--no-limits", "--dir", self.directory)
        self.assertEqual([r["system"] for r in rows], ["default"])
        self.assertGreater(rows[0]["tx_per_s.median"], 0)
