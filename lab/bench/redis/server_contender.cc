// Servers under load.
#include <base/check.h>
#include <bench/drive.h>
#include <bench/redis/server.h>
#include <bench/redis/server_contender.h>
#include <bench/redis/workload.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tx/mechanism/catalog.h>
#include <tx/open.h>
#include <workloads/run.h>

#include <algorithm>

namespace stele::bench::redis {
namespace {

// What distinguishes the servers.
struct setting {
  std::string name;
  texts arguments;
  std::string media;
  durability_level survives;
};

class server_contender final : public contender {
 public:
  server_contender(const task& t, setting s, std::unique_ptr<workloads::workload> draws,
                   std::unique_ptr<redis_workload> content)
      : task_(t),
        setting_(std::move(s)),
        draws_(std::move(draws)),
        content_(std::move(content)),
        generators_(make_generators(t)) {}

  std::string name() const override { return setting_.name + task_.note; }
  std::string media() const override { return setting_.media; }
  durability_level durability() const override { return setting_.survives; }

  result<> set_up() override {
    auto started =
        server::start(pool_path(task_, "redis-" + setting_.name + task_.label), setting_.arguments);
    if (!started) return std::unexpected(std::move(started.error()));
    server_ = std::move(*started);
    const auto to = open();
    if (!to) return std::unexpected(to.error());
    if (auto filled = content_->fill(**to); !filled) return filled;
    for (std::size_t i = 0; i < generators_.size(); ++i) {
      auto own = open();
      if (!own) return std::unexpected(std::move(own.error()));
      sessions_.push_back(content_->make_session(std::move(*own)));
    }
    return {};
  }
  result<measurement> run(double seconds) override {
    return drive(generators_, seconds, task_.idle_share, [this](unsigned thread) {
      return draw_and_apply(*draws_, task_.ops_per_tx,
                            [of = sessions_[thread].get()](std::span<const operation> ops) {
                              return of->apply(ops);
                            });
    });
  }
  footprint space() override {
    const auto to = open();
    const auto used = to ? number_of_info(**to, "stele", "stele_used_bytes")
                         : std::unexpected(to.error());  // of a server with the module
    return {used ? static_cast<std::uint64_t>(*used) : server_->file_bytes(), live_bytes_of(task_),
            0};
  }
  result<> check() override {
    const auto to = open();
    return to ? content_->check(**to) : std::unexpected(to.error());
  }

 private:
  result<std::shared_ptr<connection>> open() const { return connection::open(server_->socket()); }

  const task task_;
  const setting setting_;
  const std::unique_ptr<workloads::workload> draws_;
  const std::unique_ptr<redis_workload> content_;
  std::vector<base::rng> generators_;
  std::unique_ptr<server> server_;
  std::vector<std::unique_ptr<session>> sessions_;
};

contender_result make(const task& t, setting s) {
  auto content = make_redis_workload(t.workload, t.parameters);
  if (!content) return std::unexpected(std::move(content.error()));
  auto draws = workloads::make_workload(t.workload, t.parameters);
  if (!draws) return std::unexpected(std::move(draws.error()));
  return std::make_unique<server_contender>(t, std::move(s), std::move(*draws),
                                            std::move(*content));
}

// What an acknowledged transaction survives, of a file in the task's folder that is synced.
durability_level synced(const task& t) {
  return detail::durability_of_path(t.dir);
}

}  // namespace

contender_result make_with_module(const task& t, const std::string& mechanism) {
  const auto known = detail::find_mechanism(mechanism);
  if (!known) return std::unexpected(known.error());
  // Workloads add keys, and pools of archapt do not grow.
  constexpr std::size_t mib = std::size_t{1} << 20;
  const bool has_room_from_start = mechanism.starts_with("archapt");
  const std::size_t size = t.pool_size_bytes != 0
                               ? t.pool_size_bytes
                               : std::max<std::size_t>(64 * mib, 6 * live_bytes_of(t)) +
                                     (has_room_from_start ? 768 * mib : 0);
  return make(
      t, {mechanism, module_settings(t.media, size, mechanism), t.media, durability_of(t, t.dir)});
}

contender_result make_with_files(const task& t, std::string_view name) {
  if (name == "aof-always")
    return make(
        t,
        {std::string(name), {"--appendonly", "yes", "--appendfsync", "always"}, "file", synced(t)});
  // The file is written before the answer, and synced within two seconds.
  if (name == "aof-everysec")
    return make(t, {std::string(name),
                    {"--appendonly", "yes", "--appendfsync", "everysec"},
                    "file",
                    durability_level::process});
  return base::fail(errc::not_found, fmt::format("the host redis has no rival '{}'; it has: {}",
                                                 name, fmt::join(file_contender_names(), ", ")));
}

contender_result make_without_files(const task& t) {
  return make(t, {"no-persistence", {}, "none", durability_level::none});
}

std::vector<std::string> file_contender_names() {
  return {"aof-always", "aof-everysec"};
}

}  // namespace stele::bench::redis
