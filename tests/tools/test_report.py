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


class Agreement(unittest.TestCase):
    def test_of_each_way_to_state_a_number(self):
        for stated, unit, measured, verdict in (
                ("39.7 %", "%", [46.8], "agrees"), ("39.7 %", "%", [60], "higher"), ("23.0 %", "%", [-116], "other sign"),
                ("about 1 %", "%", [2.9], "agrees"), ("56.3 % to 143.7 %, mean 86.3 %", "%", [53, 173, 60], "agrees"),
                ("8 to 49 %", "%", [5, 20], "agrees"), ("8 to 49 %", "%", [70, 80], "higher"),
                ("22 %, mean; up to 32 %", "%", [10, 12], "lower"), ("53 % in the mean", "%", [50], "agrees"),
                ("as high as 74.6 %, on average", "%", [51, 80], "agrees"), ("8 % or less", "%", [1, 30], "higher"),
                ("8 % or less", "%", [-5], "agrees"), ("more than 200 MB", "MB", [700], "agrees"), ("over 50 %", "%", [4.5], "lower"),
                ("-3 % at the worst", "%", [-20, 5], "lower"), ("2/3 (66.7 %)", "%", [62], "agrees"),
                ("3 times", "times", [3.1], "agrees"), ("almost half", "%", [48], "in words"), ("901 objects", "lines", [900], "in words"),
                ("0", "lines", [0], "agrees"), ("0", "lines", [4], "higher"), ("consistently better", "%", [3, -1], "other sign"),
                ("worse", "%", [-3], "agrees"), ("0.53", "", [0.5], "agrees"), ("40 %", "%", [], "not measured")):
            claim = {"stated": stated, "unit": unit, "measured": measured}
            self.assertEqual(report.verdict_of(claim), verdict, (stated, measured))


if __name__ == "__main__":
    unittest.main()
