"""What tools/shape, tools/lint and tools/commit-counts read: functions, classes, members, recurring lines, traces."""

import argparse
import os
import shutil
import subprocess
import tempfile
import unittest

import program
import cpp_text
import valgrind_trace


shape, commit_counts, lint = program.load("shape"), program.load("commit-counts"), program.load("lint")

HEADER = """\
// class in_a_comment : public nothing {
#pragma once
namespace stele::detail {

template <class Media>
class floor_of : public engine {
 public:
  virtual bool commit(transaction& t) = 0;
};

template <class Media>
class alignas(64) leaf final : public floor_of<Media>, private std::vector<int> {
  struct slot {
    int key, value;
  };

 public:
  explicit leaf(int n) : n_(n), text_{"a { brace ;"} {}
  leaf& operator=(const leaf&) = delete;
  bool commit(transaction& t) override {
    return t.lines() < n_;  // }
  }
  [[nodiscard]] result<> recover();

 private:
  static constexpr int most = 3;
  enum class state { idle, busy };
  int n_ = 0, m_ = f(1, 2);
  std::function<void(int, int)> on_end_;
  void (*old_)(int) = nullptr;
  std::atomic<bool> a_{false}, b_{false};
  state state_ = state::idle;
  const std::string text_;
};

template <class Media>
result<> leaf<Media>::recover() {
  const auto done = [] { return true; };
  return done();
}
}  // namespace stele::detail
"""


class Text(unittest.TestCase):
    def test_functions_with_their_names_and_lines(self):
        found = [(f.name, f.lines) for f in cpp_text.functions(HEADER)]
        self.assertEqual(found, [("leaf", 1), ("commit", 3), ("leaf::recover", 5)])

    def test_classes_with_their_bases(self):
        found = {c.name: c.bases for c in cpp_text.classes(HEADER)}
        self.assertEqual(found, {"floor_of": ["engine"], "leaf": ["floor_of", "vector"], "slot": []})

    def test_data_members_are_not_functions_types_or_static(self):
        found = {c.name: cpp_text.data_members(c.body) for c in cpp_text.classes(HEADER)}
        self.assertEqual(found, {"floor_of": 0, "leaf": 8, "slot": 2})


class Shape(unittest.TestCase):
    def setUp(self):
        engine = "class engine {\n  virtual ~engine();\n  virtual bool f();\n};\n"
        self.files = {"src/tx/engine.h": engine, "src/tx/mechanism/leaf.h": HEADER}

    def test_levels_lines_and_virtual_functions(self):
        figures = shape.figures_of(self.files)
        leaf = figures["mechanisms"]["src/tx/mechanism/leaf.h"]
        self.assertEqual((leaf["levels"], leaf["commit"], leaf["recover"]), (3, 3, 5))
        self.assertEqual(figures["virtual_functions"], 1)
        self.assertEqual(figures["tx_lines"], sum(t.count("\n") for t in self.files.values()))

    def test_an_inherited_function_is_that_of_the_nearest_base(self):
        self.files["src/tx/mechanism/more.h"] = "class more : public leaf<int> {};\n"
        more = shape.figures_of(self.files)["mechanisms"]["src/tx/mechanism/more.h"]
        self.assertEqual((more["levels"], more["recover"], more["recover_in"]), (4, 5, "src/tx/mechanism/leaf.h"))

    def test_lines_recur_alone_and_in_runs(self):
        one = "int alpha_alpha = 1;\nint beta_beta = 2;\n\n// c\nint gamma_gamma = 3;\nint only_here = 4;\n"
        other = "int alpha_alpha = 1;\n{\nint beta_beta  = 2;\nint gamma_gamma = 3;\n"
        other += "int other_one = 5;\nint only_here = 4;\n"
        shares = shape.recurring({"one": one, "other": other, "none": "int nothing_of_it = 0;\n"})
        self.assertEqual(shares, {"one": (100, 75), "other": (80, 60), "none": (0, 0)})

    def test_a_figure_above_its_goal_is_a_finding(self):
        asserted = "STELE_ASSERT(a);\n" * 3
        figures = shape.figures_of({**self.files, "src/published/redo.h": "class redo : public leaf<int> {};\n", "src/tx/asserted.cc": asserted})
        figures["mechanisms"]["src/published/redo.h"]["levels"] = 3
        self.assertEqual(list(shape.complaints(figures)), [])
        figures["mechanisms"]["src/published/redo.h"]["levels"] = 6
        figures["members"]["transaction"] = 99
        found = [c.split(":")[0] for c in shape.complaints(figures)]
        self.assertEqual(found, ["src/published/redo.h", "transaction"])

    def test_a_ninth_option_is_a_finding(self):
        members = "".join(f"  int option_{i} = 0;\n" for i in range(8))
        files = {"include/stele/pool.h": "struct pool_options {\n" + members + "};\n"}
        self.assertEqual(list(shape.complaints(shape.figures_of(files))), [])
        files["include/stele/pool.h"] = "struct pool_options {\n" + members + "  int ninth = 0;\n};\n"
        self.assertEqual(list(shape.complaints(shape.figures_of(files))), ["pool_options: options 9; at most 8"])

    def test_an_open_pool_and_its_parts_have_few_members(self):
        most = shape.GOALS["session_members"]
        members = "".join(f"  int m{i}_ = 0;\n" for i in range(most))
        asserted = "STELE_ASSERT(a);\n" * 9
        files = {"src/tx/runtime.h": f"class runtime {{\n{members}  bias bias_;\n}};\n{asserted}", "src/tx/session/bias.h": f"class bias {{\n{members}}};\n",
                 "src/tx/home.h": f"class other {{\n{members}{members}}};\n{asserted}"}
        figures = shape.figures_of(files)
        self.assertEqual(figures["session_members"], {"runtime": most + 1, "bias": most})
        self.assertEqual(list(shape.complaints(figures)), [f"runtime: session members {most + 1}; at most {most}"])

    def test_a_part_of_an_open_pool_does_not_name_runtime(self):
        named = {"src/tx/session/a.h": "// of runtime\nclass a {};\n", "src/tx/session/b.cc": "#include <tx/runtime.h>\n",
                 "src/tx/session/c_test.cc": "void f(runtime& r);\n", "src/tx/home.h": "class runtime;\n" + "STELE_ASSERT(a);\n" * 9}
        found = [c.split(":")[0] for c in shape.complaints(shape.figures_of(named))]
        self.assertEqual(found, ["src/tx/session/b.cc", "src/tx/session/c_test.cc"])

    def test_assertions_of_three_grades_are_counted_and_too_few_are_a_finding(self):
        asserted = "STELE_ASSERT(a);\n// STELE_ASSERT(comment);\nSTELE_ASSERT_WHOLE(\n  b);\nSTELE_ASSERT_ALWAYS(c);\nSTELE_ASSERT_UNEVALUATED(d);\n"
        files = {"src/pool/heap.cc": asserted, "src/pool/heap_test.cc": asserted, "src/tx/access.cc": "int x;\n" * 49 + "STELE_ASSERT(x);\n"}
        figures = shape.figures_of(files)
        self.assertEqual((figures["assertions"]["src/pool"], figures["assertions"]["src/tx"]), ((3, 6), (1, 50)))
        self.assertEqual(list(shape.complaints(figures)), ["src/tx: 2.0 assertions in 100 lines; at least 3"])


    def test_lines_for_mutants_are_counted_outside_their_lists_and_tests(self):
        line = "if (planted(mutant::a) || planted(mutant::b)) return;\n"
        files = {**self.files, "src/tx/a.h": line + "int x;\n", "src/base/mutant.h": line, "src/tx/a_test.cc": line}
        self.assertEqual(shape.figures_of(files)["mutant_lines"], 1)

    def test_more_lines_for_mutants_than_the_goal_are_a_finding(self):
        line, most = "if (planted(mutant::a)) return;\n", shape.GOALS["mutant_lines"]
        at_most, more = ({"src/media/a.h": line * count} for count in (most, most + 1))
        self.assertEqual(list(shape.complaints(shape.figures_of(at_most))), [])
        self.assertEqual(list(shape.complaints(shape.figures_of(more))), [f"src: mutant lines {most + 1}; at most {most}"])


class Places(unittest.TestCase):
    SOURCE = "void f() {\n  m.fence();\n  if (ok) m.fence_ok();\n}\nvoid c::g() {\n  ASSERT(base::holds(a));\n  m.flush(a, 1);\n  pause();\n}\n"

    def findings(self, words):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"lab/explore/mutant_table.h": f'left_out("name", "redo",\n  {words})', "src/tx/a.h": self.SOURCE}.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write(text)
            lint.findings.clear()
            lint.check_places(root)
        return list(lint.findings)

    def test_a_place_of_a_mutant_is_in_the_source(self):
        self.assertEqual(self.findings('"fence a.h:f#2, "\n"last flush a.h:g"'), [])
        self.assertEqual(self.findings('"a.h:g"'), [])
        self.assertEqual(self.findings('"pause a.h:g"'), [])
        for wrong in ("fence a.h:f#3", "fence a.h:g", "stream a.h:g", "a.h:f", "fence b.h:f", "pause a.h:f"):
            self.assertEqual(len(self.findings(f'"{wrong}"')), 1, wrong)


class Papers(unittest.TestCase):
    ROW = "| {} | a part | `src/part.h` | {} | figure 1 | none |\n"

    def findings(self, rows, test="// B1, B12\nTEST(a, b) {}\n"):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"docs/papers/README.md": rows, "src/part.h": "", "tests/x_test.cc": test}.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write(text)
            lint.findings.clear()
            lint.check_papers(root)
        return list(lint.findings)

    def test_a_row_has_files_and_a_test_that_names_it(self):
        named, missing = "`tests/x_test.cc`", "`tests/none_test.cc`"
        self.assertEqual(self.findings(self.ROW.format("B1", named) + self.ROW.format("B12", named)), [])
        self.assertEqual(self.findings(self.ROW.format("L13", "no test")), [])
        self.assertIn("does not name B2:", self.findings(self.ROW.format("B2", named))[0])
        self.assertIn("does not name B1:", self.findings(self.ROW.format("B1", named), "int B1;\n")[0])
        self.assertIn("does not exist", self.findings(self.ROW.format("B1", missing))[0])
        self.assertIn("names no test", self.findings(self.ROW.format("B1", ""))[0])
        self.assertIn("4 cells", self.findings("| B1 | a part | `src/part.h` | no test |\n")[0])


class Reasons(unittest.TestCase):
    def findings(self, page):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "docs/papers"))
            with open(os.path.join(root, "docs/papers/kiln.md"), "w", encoding="utf-8") as f:
                f.write(page)
            lint.findings.clear()
            lint.check_reasons(root)
        return list(lint.findings)

    def test_an_item_below_the_line_names_its_command_or_says_not_shown(self):
        head = "# Kiln\n\n- no reason\n\nWhere they differ:\n\n"
        for item in ("- It is slow (`figure kiln\n  --figure 9`).", "- It is slow; why is not\n  shown.", "- It has `stele sim run FILE`."):
            self.assertEqual(self.findings(head + item + "\n"), [], item)
        found = self.findings(head + "- It is fast (`figure kiln --figure 9`).\n- It is slow since\n  it is `fast`.\n\nElse:\n\n- nothing\n")
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("docs/papers/kiln.md:8: '- It is slow since"), found)

    def test_so_does_a_sentence_with_the_words(self):
        self.assertEqual(self.findings("A. It differs because of this, which `bench lsnvmm` shows. B.\n"), [])
        self.assertEqual(len(self.findings("Shown by `bench lsnvmm`. It\ndiffers because of this. Not shown.\n")), 1)


class Architecture(unittest.TestCase):
    FILES = {"src/base/check.h": "", "src/tx/log/ring.h": "", "cli/main.cc": ""}
    ROWS = "| 0 | `src/base/` | check |\n| 4 | `src/tx/` | logs |\n"

    def findings(self, page, files=None):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"docs/architecture.md": page, **self.FILES, **(files or {})}.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write(text)
            lint.findings.clear()
            lint.check_architecture(root)
        return list(lint.findings)

    def test_each_named_path_exists_whole_or_its_end(self):
        self.assertEqual(self.findings(self.ROWS + "`tx/log/` has `ring.h`, `*_kind.h` and src/base/check.h; `stele/`\n    log/ring.h  1 append\n`cli/` `atomic/wait`\n",
                                       {"include/stele/pool.h": ""}), [])
        for name in ("tx/ring.h", "wait.cc", "log/main.cc", "tx/mechanism/"):
            self.assertEqual(self.findings(self.ROWS + f"see `{name}`\n"), [f"docs/architecture.md:3: names {name}, which does not exist"])

    def test_each_folder_of_src_has_a_row_with_its_floor(self):
        self.assertEqual(self.findings(self.ROWS.replace("4", "3")), ["docs/architecture.md:1: has no row of src/tx/ with floor 4"])
        self.assertEqual(self.findings(self.ROWS, {"src/pool/heap.h": ""}), ["docs/architecture.md:1: has no row of src/pool/ with floor 3"])


class Pages(unittest.TestCase):
    def findings(self, pages):
        with tempfile.TemporaryDirectory() as root:
            for name, words in pages.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write("word\n" * words)
            lint.findings.clear()
            lint.check_pages_words(root)
        return list(lint.findings)

    def test_the_pages_together_have_a_limit_of_words(self):
        pages = {"README.md": 1000, "docs/a.md": 49000, "docs/guide/b.md": 50000, "docs/c.txt": 10, "tests/d.md": 10}
        self.assertEqual(self.findings(pages), [])
        found = self.findings({**pages, "docs/guide/e.md": 1})
        self.assertEqual(found, ["docs:1: 100001 words in the pages and README.md; at most 100000: cut what serves no reader"])


@unittest.skipUnless(shutil.which("git"), "without git there is no history")
class Subjects(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("The first one", "")

    def git(self, *arguments):
        own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": os.path.dirname(self.root)}
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True, env={**os.environ, **own})

    def commit(self, subject, body="Why."):
        self.git("commit", "--quiet", "--allow-empty", "--message", subject, *(["--message", body] if body else []))

    def findings(self):
        lint.findings.clear()
        lint.check_subjects(self.root)
        return [f.split(": ", 1)[1] for f in lint.findings]

    def test_commits_that_are_merged_are_not_judged_beside_others(self):
        self.git("switch", "--quiet", "--create", "change")
        self.commit("Add a check")
        self.assertEqual(self.findings(), [])

    def test_every_commit_of_a_change_is_judged(self):
        self.git("switch", "--quiet", "--create", "change")
        self.commit("Adds a check")
        for i in range(lint.CHECKED_SUBJECTS):
            self.commit(f"Add check {i}")
        self.assertEqual(len(self.findings()), 1)
        self.assertIn("'Adds' does not begin an imperative subject", self.findings()[0])

    def test_subjects_are_short_and_imperative_and_bodies_say_why(self):
        self.git("switch", "--quiet", "--create", "change")
        for subject in ("Pass it on", "Feed the log", "Address what " + "x" * 59, "Process a page"):
            self.commit(subject)
        self.assertEqual(self.findings(), [])
        for wrong in ("Docs: a page", "docs: add a page", "A page is added", "Added a page", "Adding a page", "Redis' commands are mended",
                      "Address what " + "x" * 60):
            self.commit(wrong)
        self.commit("Add a page", "")
        self.assertEqual(len(self.findings()), 8)

    def test_without_a_merged_history_the_newest_are_judged(self):
        self.assertEqual(len(self.findings()), 2)  # no verb, no body
        self.git("branch", "--move", "other")
        self.assertEqual(len(self.findings()), 2)


class Trace(unittest.TestCase):
    def counter(self, warm_up, transactions):
        counter = commit_counts.Counter.__new__(commit_counts.Counter)
        counter.program, counter.options = "p", argparse.Namespace(warm_up=warm_up, transactions=transactions)
        counter.fences = {valgrind_trace.instruction_line(0x20, valgrind_trace.FENCE_BYTES)}
        counter.begin = valgrind_trace.instruction_line(0x10, 4).split(b",")[0] + b","
        return counter

    @staticmethod
    def transaction(stores_before, stores_after):
        begin, fence = valgrind_trace.instruction_line(0x10, 4), valgrind_trace.instruction_line(0x20, 3)
        return [begin, *[b" S 1000,8\n"] * stores_before, b" L 1000,8\n", fence, *[b" M 1000,8\n"] * stores_after]

    def test_counts_between_fences_and_of_transactions(self):
        stores = [(9, 9), (3, 1), (5, 2), (0, 0)]
        lines = [b"I  00000001,1\n", *(line for each in stores for line in self.transaction(*each))]
        found = self.counter(1, 2).read_task(iter(lines), 3)
        self.assertEqual(found.fences, [1, 1])
        self.assertEqual([(c.instructions, c.stores) for c in found.transactions], [(2, 4), (2, 7)])
        self.assertEqual([(c.instructions, c.stores) for c in found.between], [(2, 12), (2, 6)])
        self.assertEqual([c.stores for c in found.tails], [1, 2])

    def test_a_trace_that_ends_early_is_an_error(self):
        with self.assertRaises(SystemExit):
            self.counter(0, 2).read_task(iter(self.transaction(1, 1)), 2)

    def test_a_count_above_its_limit_is_a_finding(self):
        row = commit_counts.Row("sps", "stm", "default")
        results = {row: {"between_fences": {"instructions": {"median": 1006}, "stores": {"median": 100}}}}
        self.assertEqual(len(list(commit_counts.risen(results, {row: commit_counts.Count(1000, 100)}))), 1)
        self.assertEqual(len(list(commit_counts.risen(results, {row: commit_counts.Count(1001, 100)}))), 0)


class DescriptorsTest(unittest.TestCase):
    """Only src/media/os.cc makes descriptors."""

    def found(self, path, line):
        lint.findings.clear()
        lint.check_descriptors(path, [line])
        return len(lint.findings)

    def test_calls_that_make_descriptors_are_findings(self):
        for line in ("int fd = ::open(path.c_str(), O_RDONLY);", "auto s = ::socket(AF_UNIX, 0, 0);", "std::ifstream in(path);",
                     "FILE* f = std::fopen(name, mode);", "for (auto& e : fs::directory_iterator(folder))",
                     "const int other = ::dup(fd);", "::memfd_create(name, 0)", "::accept4(fd, a, b, 0)", "::eventfd(0, 0)"):
            self.assertEqual(self.found("src/pool/x.cc", line), 1, line)

    def test_others_are_none(self):
        for path, line in (("src/media/os.cc", "::open(path, flags)"), ("src/pool/x.cc", "os::open(path, flags)"),
                           ("src/pool/x.cc", "pool_file::open(path)"), ("src/pool/x_test.cc", "std::ifstream in(path);"),
                           ("cli/x.cc", "std::ifstream in(path);"), ("src/pool/x.cc", "// what ::open() does")):
            self.assertEqual(self.found(path, line), 0, line)


class TransactionsTest(unittest.TestCase):
    """Front ends hold transactions; they do not drive them from inside."""

    def found(self, path, line):
        lint.findings.clear()
        lint.check_transactions(path, [line])
        return len(lint.findings)

    def test_internals_in_a_front_end_are_findings(self):
        for line in ("if (detail::begin_transaction(core(), true, how) == detail::begin_status::refused)", "detail::retry_transaction();",
                     "} catch (const detail::restart&) {", "  STELE_ASSERT(detail::this_access.size != 0);", "left_ = this_access.size / 8;",
                     "return detail::run_transaction(core, true, d, body);", "void* b = detail::allocate(size, 16);",
                     "return std::unexpected(detail::last_error());", "detail::transaction& tx = running();"):
            for path in ("src/adapters/python/x.h", "src/adapters/redis/x.cc", "src/capi/x.cc", "src/containers/kv_x.h"):
                self.assertEqual(self.found(path, line), 1, (path, line))

    def test_others_are_none(self):
        for path, line in (("src/tx/x.cc", "commit_transaction();"), ("src/adapters/itm/x.cc", "detail::commit_transaction();"),
                           ("tests/x.cc", "detail::this_access.size"), ("src/capi/x.cc", "// run_transaction retries"),
                           ("src/capi/x.cc", "set_last_error(code)"), ("src/capi/x.cc", "capi::last_error.text"),
                           ("src/adapters/python/x.cc", "transaction_ = detail::hold_update(core(), how, code_between::may_wait);"),
                           ("src/adapters/redis/x.cc", "pool_memory::allocate(bytes, 16)"), ("src/containers/x.h", "Memory::allocate(bytes, 8)"),
                           ("src/containers/x.cc", "detail::load(reinterpret_cast<const std::uint64_t*>(&r))")):
            self.assertEqual(self.found(path, line), 0, (path, line))


if __name__ == "__main__":
    unittest.main()
