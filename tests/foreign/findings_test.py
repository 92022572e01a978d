#!/usr/bin/env python3
"""tools/foreign-findings on a checkout that the test makes: a structure that is right, and the same with two bugs.

usage: findings_test.py stele-foreign TOOL. Ends with status 77 where valgrind or the recorder is missing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

FOREIGN, TOOL = sys.argv[1:3]
# In the place of the B+-tree, and with its interface: an array of slots.
STRUCTURE = """
#pragma once
#include <cstddef>
#include <mutex>
class btree {
  struct slot { char* value; long key; };
  static constexpr int most = 64;
  alignas(64) slot slots[most];
  int count;
  slot* slot_of(long key) {
    for (int i = 0; i < count; ++i)
      if (slots[i].key == key) return &slots[i];
    return nullptr;
  }
  static void persist(const void* at) { __builtin_ia32_clflush(at); __builtin_ia32_sfence(); }
 public:
  btree() {
    count = most;
    CONSTRUCTED;
    for (slot& s : slots) {
      s.key = -1;
      persist(&s);
    }
  }
  void btree_insert(long key, char* value) {
    slot* s = slot_of(-1);
    s->value = value;
    s->key = key;
    INSERTED;
  }
  void btree_delete(long key) {
    slot* s = slot_of(key);
    s->key = -1;
    persist(s);
  }
  char* btree_search(long key) {
    slot* s = slot_of(key);
    return s == nullptr ? nullptr : s->value;
  }
};
"""


class Findings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stele-findings-test-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(shutil.rmtree, self.folder)

    def tool(self, *arguments):
        run = subprocess.run([TOOL, "--command", os.path.relpath(FOREIGN), "--work", os.path.join(self.folder, "work"), "--dir", self.folder, "--steps", "6",
                              "--bound", "16", "--replays", *arguments], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout, run.stderr

    def rows(self, constructed, inserted):
        sources = os.path.join(self.folder, "checkout", "concurrent", "src")
        os.makedirs(sources)
        with open(os.path.join(sources, "btree.h"), "w", encoding="utf-8") as file:
            file.write(STRUCTURE.replace("CONSTRUCTED", constructed).replace("INSERTED", inserted))
        status, text, errors = self.tool("--fast-fair", os.path.join(self.folder, "checkout"), "fast_fair_concurrent")
        self.assertEqual(status, 0, text + errors)
        cells = [line.split(" | ") for line in text.splitlines()[1:] if not line.startswith(" ")]
        self.assertEqual([c[1] for c in cells], ["steps", "further", "constructor"])
        return {c[1]: c for c in cells}, text

    def test_a_right_structure_violates_nothing(self):
        rows, text = self.rows("persist(&count)", "persist(s)")
        for row in rows.values():
            points, total = row[2].split("/")
            self.assertEqual((points, row[4]), (total, "0"), text)
            self.assertGreater(int(row[3]), 4, text)

    def test_a_missing_flush_is_found(self):
        rows, text = self.rows("persist(&count)", "")
        for row in ("steps", "further"):
            self.assertGreater(int(rows[row][4]), 0, text)
        self.assertIn("is lost; only lost: btree.h:", text)
        self.assertIn("--replay '", text)

    def test_a_constructor_that_flushes_nothing_is_found_in_its_row_alone(self):
        rows, text = self.rows("", "persist(s)")
        self.assertEqual((rows["steps"][4], rows["further"][4]), ("0", "0"), text)
        self.assertGreater(int(rows["constructor"][4]), 0, text)

    def test_sentences(self):
        self.assertIn("there is no program /no/such", self.tool("--pmdk", self.folder, "--command", "/no/such")[2])
        self.assertIn("there is nothing to explore; name a checkout", self.tool()[2])
        status, _, errors = self.tool("--recipe", self.folder, "p_clht")
        self.assertEqual((status, "has no P-CLHT/include: give the folder of a checkout" in errors), (1, True), errors)
        status, _, errors = self.tool("--pmdk", self.folder, "btree")
        self.assertEqual((status, "map.h: give the folder of a checkout" in errors), (1, True), errors)
        self.assertIn("nothing is no program; they are", self.tool("--pmdk", self.folder, "nothing")[2])


if __name__ == "__main__":
    recorder = os.path.join(os.path.dirname(FOREIGN), "valgrind", "stele-amd64-linux")
    if shutil.which("valgrind") is None or not os.path.exists(recorder):
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]])
