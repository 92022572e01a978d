"""tools/report: one page that needs nothing else, from whatever a folder has; and what it says of agreement."""

import glob
import json
import os
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import program

PLAIN = ("/usr/bin/python3", "-S")  # without packages
TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/report")


report = program.load("report")


def figure(name, **other):
    points = [{"x": x, "min": 1.0, "median": v, "max": 9.5e6} for x, v in (("sps", 2.0), ("a & b", 2.5e6))]
    series = [{"name": "base", "label": "base <BASE>", "stated": False, "points": points},
              {"name": "text", "label": "text", "stated": True, "points": points[:1]}]
    panel = {"name": "throughput", "x": "workload", "y": "transactions a second", "xs": ["sps", "a & b"], "bars": False, "series": series}
    claims = [{"what": "one over \"another\"", "stated": "40 %", "unit": "%", "measured": [42.0], "summary": "42.0 %"}]
    return {"name": name, "title": f"Figure {name}", "source": "A, \"B\" (2016), section 5", "setting": "<script>alert(1)</script>",
            "complete": True, "panels": [{**panel, "bars": name == "blurred-9"}], "claims": claims, "notes": ["x < y"],
            "origin": {"date": "2026-11-26T18:00:00Z", "seconds": 3, "command": f"stele figure {name}", "settings": {"quick": True}}, **other}


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.page = os.path.join(self.folder.name, "page.html")

    def put(self, name, content):
        with open(os.path.join(self.folder.name, name + ".json"), "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))

    def run_tool(self, *names, page=None, python=()):
        return subprocess.run([*python, TOOL, self.folder.name, page or self.page, *names], capture_output=True, text=True, check=False)

    def written(self):
        with open(self.page, encoding="utf-8") as f:
            return f.read()

    def test_has_every_figure_and_needs_nothing_else(self):
        for name in ("blurred-9", "blurred-14", "archapt-IV"):
            self.put(name, figure(name))
        self.put("blurred-10", figure("blurred-10", complete=False, origin={}))
        self.put("compared", {"rows": []})  # JSON of another command
        done = self.run_tool("blurred-9", "blurred-10", "blurred-11", "blurred-14")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("4 figures, 1 missing", done.stdout)
        page = self.written()
        root = xml.etree.ElementTree.fromstring(page.replace("<!DOCTYPE html>", ""))  # well-formed
        ids = [e.get("id") for e in root.iter() if e.get("id")]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual([i for i in ids if re.fullmatch(r"\w+-(\d+|IV)", i)], ["blurred-9", "blurred-10", "blurred-14", "archapt-IV"])
        links = {e.get("href") for e in root.iter() if e.get("href")}
        self.assertEqual({link for link in links if link[0] != "#" or link[1:] not in ids}, set())
        self.assertNotRegex(page, r"https?:|<script|\bsrc=|url\([^#]")
        self.assertIn("&lt;script&gt;", page)
        self.assertIn("base &lt;BASE&gt;", page)
        self.assertIn("Missing or measured in part: blurred-11, blurred-10.", page)
        self.assertIn("stele figure blurred-9", page)
        if "no pictures" not in done.stdout:
            self.assertEqual(len(list(root.iter("svg"))), 4)
            self.assertIn("currentColor", page)

    def test_says_the_charging_rule_of_a_figure(self):
        self.put("blurred-9", figure("blurred-9"))
        self.run_tool()
        self.assertNotIn("Charging rule", self.written())
        self.put("blurred-9-once", figure("blurred-9-once", charge={"name": "once", "meaning": "streams < lines"}))
        self.put("blurred-16", figure("blurred-16", charge="once"))  # of another type: left out
        done = self.run_tool("blurred-9", "blurred-9-once", "blurred-16-once")
        self.assertIn("3 figures, 1 missing", done.stdout)
        self.assertIn("<strong>Charging rule once</strong>: streams &lt; lines.", self.written())

    def test_warns_of_other_work(self):
        for disturbed, kind in ((True, "warning"), (False, "small")):
            self.put("blurred-9", figure("blurred-9", load={"disturbed": disturbed, "words": "other work: 0.7 & more"}))
            self.assertEqual(self.run_tool(python=PLAIN).returncode, 0)
            self.assertIn(f'<p class="{kind}">Other work: 0.7 &amp; more.</p>', self.written())

    def test_without_matplotlib_the_tables_are_there(self):
        self.put("blurred-9", figure("blurred-9"))
        done = self.run_tool(python=PLAIN)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("No pictures", self.written())
        self.assertIn("2.500 M", self.written())

    def refused(self, sentence, **how):
        done = self.run_tool(python=PLAIN, **how)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(glob.glob(os.path.join(self.folder.name, "*.part")), [])

    def test_bad_input_is_a_sentence_and_leaves_the_old_page(self):
        self.refused("has no figure")
        self.assertFalse(os.path.exists(self.page))
        self.put("blurred-9", figure("blurred-9"))
        self.assertEqual(self.run_tool(python=PLAIN).returncode, 0)
        before = self.written()
        for content, sentence in (("{\"panels\": [", "blurred-9.json is damaged"), ({"panels": []}, "'name' of the figure"),
                                  (figure("blurred-9", claims=[{}]), "'what' of a claim"),
                                  (figure("blurred-9", panels=[3]), "'name' of a panel")):
            self.put("blurred-9", content)
            self.refused(sentence)
            self.assertEqual(self.written(), before)
        self.put("blurred-9", figure("blurred-9"))
        self.refused("cannot write", page=os.path.join(self.folder.name, "none", "page.html"))


class Intervals(unittest.TestCase):
    POINTS = [{"x": "a", "min": 1, "median": 2, "max": 4, "interval": {"low": 1.5, "high": 2.25}},
              {"x": "b", "min": 3, "median": 3, "max": 3, "interval": None}]

    def test_are_in_the_tables_of_ratios_alone(self):
        for ratios, first in ((True, "2.00 (1.50..2.25)"), (False, "2.00")):
            self.assertEqual([report.cell({"ratios": ratios}, p) for p in self.POINTS], [first, "3.00"])

    @unittest.skipIf(report.panels is None, "no matplotlib")
    def test_are_the_marks_of_the_pictures(self):
        self.assertEqual(report.panels.errors({"xs": ["a", "b"]}, {"points": self.POINTS}), [[0.5, 0], [0.25, 0]])


class Verdicts(unittest.TestCase):
    def verdict(self, words, **other):
        return {"paper": "kiln", "figure": "9", "claim": "it has < 1", "expected_words": "0.91..0.92", "measured_words": "0.92 (0.90..0.94)",
                "readings": [], "verdict": words, **other}

    def test_begin_the_page_and_are_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            with open(os.path.join(folder, "kiln-9.json"), "w", encoding="utf-8") as f:
                json.dump(figure("kiln-9", verdicts=[self.verdict("agrees")]), f)
            claims = [self.verdict("agrees"), self.verdict("holds under long queues", claim="other"),
                      self.verdict("does not hold", figure="6"), self.verdict("not measured", figure="6", claim="third")]
            for content, status in (({"claims": claims}, 0), ({"claims": [{}]}, 1), ([], 1)):
                with open(os.path.join(folder, "claims.json"), "w", encoding="utf-8") as f:
                    json.dump(content, f)
                done = subprocess.run([*PLAIN, TOOL, folder, page], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status, done.stderr)
            with open(page, encoding="utf-8") as f:
                written = f.read()
        xml.etree.ElementTree.fromstring(written.replace("<!DOCTYPE html>", ""))
        self.assertLess(written.index("it has &lt; 1"), written.index('id="contents"'))
        self.assertIn('<a href="#kiln-9">kiln 9</a>', written)
        self.assertIn("<td>kiln 6</td>", written, "a figure that the page lacks is no link")
        self.assertIn('<span class="verdict holds-under">holds under long queues</span>', written)
        self.assertEqual(re.findall(r"<td>(\d)</td>", written.split("id=\"claims\"")[0]), ["1"] * 4)


if __name__ == "__main__":
    unittest.main()
