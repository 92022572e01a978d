// Reads a text, indexes it in a pool, and verifies the index.
#include <cli/output.h>
#include <cli/text_index.h>
#include <fmt/format.h>
#include <stele/hash_map.h>
#include <stele/pool.h>
#include <stele/string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <unordered_map>

#include <base/check.h>

namespace stele::cli {

namespace {

using base::fail;

constexpr std::uint64_t least_bytes = 1'000'000, most_bytes = 12'000'000;

// The number of occurrences of a word, and the line of the last one.
struct entry {
  std::uint64_t count, last_line;
  friend bool operator==(const entry&, const entry&) = default;
};

// The pool's root: the index, and the number of lines that each thread has finished.
struct index_root {
  using pool_resident = void;
  hash_map<string, entry> words;
  field<std::uint64_t> finished[indexers];
};

template <class F>
void for_each_word(std::string_view line, F&& f) {
  constexpr std::string_view gaps = " \t\r\n\f\v.,;:!?\"'()[]{}<>=+*/\\|&#~`^%$@";
  for (std::size_t at = line.find_first_not_of(gaps); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(gaps, at), line.size());
    f(line.substr(at, std::min<std::size_t>(end - at, 255)));
    at = line.find_first_not_of(gaps, end);
  }
}

bool looks_like_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  char sample[4096];
  in.read(sample, sizeof sample);
  const auto got = static_cast<std::size_t>(in.gcount());
  return got == sizeof sample && std::memchr(sample, 0, got) == nullptr &&
         std::count(sample, sample + got, ' ') > 200;
}

// Finds the largest text of a suitable size in the usual folders. Texts of equal size are ordered
// by name, so that two runs choose the same text.
std::string find_text() {
  namespace fs = std::filesystem;
  std::pair<std::uint64_t, std::string> best{0, ""};
  for (const char* root : {"/usr/share/dict", "/usr/share/doc", "/usr/share/perl", "/usr/include",
                           "/usr/share", "/usr/lib/python3", "/var/lib/dpkg", "/usr/lib"}) {
    std::error_code problem;
    fs::recursive_directory_iterator walk(root, fs::directory_options::skip_permission_denied,
                                          problem);
    for (; !problem && walk != fs::recursive_directory_iterator(); walk.increment(problem)) {
      std::error_code unreadable;
      if (!walk->is_regular_file(unreadable) || walk->is_symlink(unreadable)) continue;
      const std::uint64_t size = walk->file_size(unreadable);
      if (unreadable || size < least_bytes || size > most_bytes || !looks_like_text(walk->path()))
        continue;
      best = std::max(best, {size, walk->path().string()});
    }
    if (best.first >= 2 * least_bytes) break;
  }
  return best.second;
}

void split(text& t) {
  std::unordered_map<std::string_view, int> seen;
  std::string_view rest(t.content);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    t.lines.push_back(rest.substr(0, end));
    for_each_word(t.lines.back(), [&](std::string_view w) { ++t.words, ++seen[w]; });
    rest.remove_prefix(end);
  }
  t.distinct = seen.size();
}

result<pool<index_root>> open_index(const text& t, const std::string& path,
                                    const std::string& mechanism, const std::string& media) {
  return pool<index_root>::open(path, {.create_size = (std::size_t{64} << 20) + t.distinct * 512,
                                       .layout = "word index",
                                       .engine = {.mechanism = mechanism, .media = media}});
}

result<> index_lines(const text& t, pool<index_root>& p, unsigned thread,
                     const std::function<void(unsigned, std::uint64_t)>& acknowledge) {
  auto done = p.read([&](const index_root& r) { return r.finished[thread].load(); });
  if (!done) return std::unexpected(done.error());
  for (std::uint64_t i = *done; i * indexers + thread < t.lines.size(); ++i) {
    const std::uint64_t number = i * indexers + thread;
    auto kept = p.update([&](index_root& r) {
      for_each_word(t.lines[number], [&](std::string_view w) {
        auto item = r.words.try_emplace(w).first;
        const entry old = item->second.load();
        item->second = entry{old.count + 1, std::max(old.last_line, number)};
      });
      r.finished[thread] = i + 1;
    });
    if (!kept) return kept;
    acknowledge(thread, i);
  }
  return {};
}

using expected_index = std::unordered_map<std::string_view, entry>;

expected_index index_of(const text& t, const acknowledged& finished) {
  expected_index index;
  for (std::uint64_t number = 0; number < t.lines.size(); ++number)
    if (number / indexers < finished[number % indexers])
      for_each_word(t.lines[number], [&](std::string_view w) {
        entry& e = index[w];
        ++e.count;
        e.last_line = number;
      });
  return index;
}

result<> compare_with(const index_root& r, const expected_index& expected) {
  std::uint64_t words = 0;
  result<> verdict;
  r.words.for_each([&](const auto& key, const auto& value) {
    const std::string word = key.str();
    const auto found = expected.find(word);
    ++words;
    if (found == expected.end() || found->second != value.load())
      verdict =
          fail(errc::corrupt,
               fmt::format("the entry of '{}' is not what the lines in the index give", word));
  });
  if (words != expected.size())
    return fail(errc::corrupt,
                fmt::format("the index holds {} words; its lines have {}", words, expected.size()));
  return verdict;
}

result<index_verification> verify(const text& t, const std::string& path,
                                  const std::string& mechanism, const std::string& media,
                                  const acknowledged& lines) {
  index_verification found;
  const auto begin = std::chrono::steady_clock::now();
  auto p = open_index(t, path, mechanism, media);
  if (!p) return std::unexpected(p.error());
  found.open_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  auto checked = p->read([&](const index_root& r) -> result<> {
    acknowledged there{};
    for (unsigned i = 0; i < indexers; ++i) {
      there[i] = r.finished[i];
      if (there[i] < lines[i])
        return fail(errc::corrupt,
                    fmt::format("thread {} was told of {} lines, the index has {}: lost", i,
                                lines[i], there[i]));
      if (there[i] > lines[i] + 1)
        return fail(errc::corrupt,
                    fmt::format("thread {} was told of {} lines, the index has {}: never written",
                                i, lines[i], there[i]));
      found.lines += there[i];
    }
    const expected_index expected = index_of(t, there);
    found.words = expected.size();
    if (auto sound = r.words.check(); !sound) return sound;
    return compare_with(r, expected);
  });
  if (!checked) return std::unexpected(checked.error());
  return found;
}

}  // namespace

result<text> read_text(const std::string& path) {
  text t;
  t.path = path.empty() ? find_text() : path;
  if (t.path.empty())
    return fail(errc::not_found,
                "found no text of 1 MB or more on this machine; give one by --input");
  std::ifstream in(t.path, std::ios::binary);
  if (!in)
    return fail(errc::not_found,
                fmt::format("cannot read {}; give another text by --input", t.path));
  std::ostringstream all;
  all << in.rdbuf();
  t.content = std::move(all).str();
  t.bytes = t.content.size();
  if (t.bytes < least_bytes)
    return fail(errc::invalid_argument,
                fmt::format("{} has {} bytes; the demo wants a text of at least {}", t.path,
                            t.bytes, least_bytes));
  split(t);
  if (t.lines.size() < 100)
    return fail(errc::invalid_argument,
                fmt::format("{} has {} lines; the demo wants a text of at least 100", t.path,
                            t.lines.size()));
  return t;
}

acknowledged all_lines(const text& t) {
  acknowledged all{};
  for (unsigned i = 0; i < indexers; ++i) all[i] = (t.lines.size() + indexers - 1 - i) / indexers;
  return all;
}

result<> index_text(const text& t, const std::string& path, const std::string& mechanism,
                    const std::string& media,
                    const std::function<void(unsigned, std::uint64_t)>& acknowledge) {
  auto p = open_index(t, path, mechanism, media);
  if (!p) return std::unexpected(p.error());
  std::array<result<>, indexers> outcome;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < indexers; ++i)
    threads.emplace_back([&, i] { outcome[i] = index_lines(t, *p, i, acknowledge); });
  threads.clear();
  for (const auto& o : outcome)
    if (!o) return o;
  return p->close();
}

result<index_verification> verify_in_new_process(const text& t, const std::string& pool,
                                                 const std::string& mechanism,
                                                 const std::string& media,
                                                 const acknowledged& lines) {
  int ends[2];
  if (::pipe(ends) != 0) return base::fail_errno(errc::io, "cannot make a pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return base::fail_errno(errc::io, "cannot start a process");
  if (child == 0) {
    ::close(ends[0]);
    const auto found = verify(t, pool, mechanism, media, lines);
    if (!found) print_error("stele: {}\n", found.error().message);
    const bool said = found && ::write(ends[1], &*found, sizeof *found) == sizeof *found;
    ::_exit(said ? 0 : 1);
  }
  ::close(ends[1]);
  index_verification found;
  const bool heard = ::read(ends[0], &found, sizeof found) == sizeof found;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!heard || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(errc::corrupt, fmt::format("{} is not what was acknowledged", pool));
  return found;
}

}  // namespace stele::cli
