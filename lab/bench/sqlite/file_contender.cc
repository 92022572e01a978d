// Contenders with a database file, by journal mode.
#include <base/check.h>
#include <bench/drive.h>
#include <bench/sqlite/file_contender.h>
#include <bench/sqlite/sessions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tx/open.h>

#include <algorithm>
#include <filesystem>

namespace stele::bench::sql {
namespace {

namespace fs = std::filesystem;

struct setting {
  std::string_view name, journal_mode;
  const char* synchronous = "FULL";
  // What an acknowledged transaction survives on a device; null: by the folder. After a power
  // failure the WAL may lack the newest transactions. A journal in memory is gone with the process:
  // a crash within a commit damages the database.
  std::optional<durability_level> survives = {};
};
constexpr setting settings[] = {{"delete", "DELETE"},
                                {"truncate", "TRUNCATE"},
                                {"persist", "PERSIST"},
                                {"wal-full", "WAL"},
                                {"wal-normal", "WAL", "NORMAL", durability_level::process},
                                {"memory", "MEMORY", "FULL", durability_level::none}};
constexpr setting in_memory = {":memory:", "MEMORY", "OFF", durability_level::none};

class file_contender final : public contender {
 public:
  file_contender(const task& t, const setting& s, std::unique_ptr<workloads::workload> draws,
                 std::unique_ptr<sql_workload> content)
      : task_(t),
        setting_(s),
        path_(is_in_memory() ? std::string(s.name) : pool_path(t, s.name)),
        draws_(std::move(draws)),
        content_(std::move(content)),
        generators_(make_generators(t)) {}
  ~file_contender() override {
    sessions_.clear();
    if (is_in_memory()) return;
    std::error_code ignored;
    for (const char* end : {"", "-journal", "-wal", "-shm"}) fs::remove(path_ + end, ignored);
  }

  std::string name() const override { return std::string(setting_.name) + task_.note; }
  std::string media() const override { return is_in_memory() ? "none" : "file"; }
  durability_level durability() const override {
    return setting_.survives ? *setting_.survives : detail::durability_of_path(task_.dir);
  }

  result<> set_up() override {
    const auto db = open();
    return db ? content_->fill(**db) : std::unexpected(db.error());
  }
  result<measurement> run(double seconds) override {
    return drive(generators_, seconds, task_.idle_share, [this](unsigned) {
      return draw_and_apply(*draws_, task_.ops_per_tx, [this](std::span<const operation> ops) {
        return sessions_.apply(ops);
      });
    });
  }
  footprint space() override {
    if (is_in_memory()) return {std::nullopt, live_bytes_of(task_), 0};
    const std::uint64_t journal = bytes_of("-wal") + bytes_of("-journal");
    return {bytes_of("") + journal, live_bytes_of(task_), journal};
  }
  result<> check() override {
    const auto db = open();
    return db ? content_->check(**db) : std::unexpected(db.error());
  }

 private:
  bool is_in_memory() const { return setting_.name == in_memory.name; }
  std::uint64_t bytes_of(const char* end) const {
    std::error_code missing;
    const auto bytes = fs::file_size(path_ + end, missing);
    return missing ? 0 : bytes;
  }
  // A database in memory has one connection.
  result<std::shared_ptr<connection>> open() {
    if (only_ != nullptr) return only_;
    auto db = connection::open(path_);
    if (!db) return db;
    if (auto set = (*db)->run(fmt::format("PRAGMA journal_mode={}; PRAGMA synchronous={}",
                                          setting_.journal_mode, setting_.synchronous));
        !set)
      return std::unexpected(std::move(set.error()));
    if (is_in_memory()) only_ = *db;
    return db;
  }

  const task task_;
  const setting setting_;
  const std::string path_;
  const std::unique_ptr<workloads::workload> draws_;
  const std::unique_ptr<sql_workload> content_;
  std::vector<base::rng> generators_;
  std::shared_ptr<connection> only_;
  session_pool sessions_{*content_, [this] { return open(); }};
};

contender_result make(const task& t, const setting& s) {
  auto content = make_sql_workload(t.workload, t.parameters);
  if (!content) return std::unexpected(std::move(content.error()));
  auto draws = workloads::make_workload(t.workload, t.parameters);
  if (!draws) return std::unexpected(std::move(draws.error()));
  return std::make_unique<file_contender>(t, s, std::move(*draws), std::move(*content));
}

}  // namespace

contender_result make_on_file(const task& t, std::string_view name) {
  const auto* const found = std::ranges::find(settings, name, &setting::name);
  if (found == std::end(settings))
    return base::fail(errc::not_found, fmt::format("the host sqlite has no rival '{}'; it has: {}",
                                                   name, fmt::join(file_contender_names(), ", ")));
  return make(t, *found);
}

contender_result make_in_memory(const task& t) {
  if (t.threads > 1)
    return base::fail(errc::unsupported,
                      ":memory: is left out: it belongs to one connection, and so to one thread");
  return make(t, in_memory);
}

std::vector<std::string> file_contender_names() {
  std::vector<std::string> names;
  for (const setting& s : settings) names.emplace_back(s.name);
  return names;
}

}  // namespace stele::bench::sql
