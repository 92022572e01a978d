// Transactions, scripts, and the workloads by name.
#include <base/check.h>
#include <bench/redis/workload.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stele::bench::redis {
namespace {

struct entry {
  std::string_view name;
  std::unique_ptr<redis_workload> (*make)(const workloads::parameters& p);
};
constexpr entry entries[] = {{"ycsb-a", make_ycsb}, {"ycsb-b", make_ycsb},
                             {"ycsb-c", make_ycsb}, {"ycsb-d", make_ycsb},
                             {"ycsb-e", make_ycsb}, {"ycsb-f", make_ycsb},
                             {"tpcc", make_tpcc},   {"linkbench", make_linkbench}};

std::vector<std::string_view> with_arguments(std::initializer_list<std::string_view> first,
                                             const texts& arguments) {
  std::vector<std::string_view> all(first);
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

result<> without_answer(result<reply> r) {
  if (!r) return std::unexpected(std::move(r.error()));
  return {};
}

}  // namespace

result<> session::load_scripts() {
  for (const std::string& text : scripts_) {
    auto loaded = to_->run({"SCRIPT", "LOAD", text});
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    digests_.push_back(std::move(loaded->text));
  }
  return {};
}

result<> session::apply(std::span<const operation> operations) {
  if (digests_.size() < scripts_.size())
    if (auto loaded = load_scripts(); !loaded) return loaded;
  if (operations.size() == 1) return run(operations[0]);
  if (auto begun = run_command({"MULTI"}); !begun) return begun;
  for (const operation& op : operations)
    if (auto done = run(op); !done) return done;
  return run_command({"EXEC"});
}

result<> session::run_command(std::initializer_list<std::string_view> of) {
  return without_answer(to_->run(of));
}

result<> session::run_script(std::size_t which, const texts& arguments) {
  return without_answer(to_->run(with_arguments({"EVALSHA", digests_[which], "0"}, arguments)));
}

result<> check_by_script(connection& to, std::string_view script, const texts& arguments) {
  const auto told = to.run(with_arguments({"EVAL", script, "0"}, arguments));
  if (!told) return base::fail(errc::corrupt, told.error().message);
  if (!told->text.empty()) return base::fail(errc::corrupt, told->text);
  return {};
}

result<std::unique_ptr<redis_workload>> make_redis_workload(std::string_view name,
                                                            const workloads::parameters& p) {
  const auto* const found = std::ranges::find(entries, name, &entry::name);
  if (found == std::end(entries)) {
    std::vector<std::string_view> names;
    for (const entry& e : entries) names.push_back(e.name);
    return base::fail(errc::unsupported,
                      fmt::format("the host redis has no workload '{}'; it has {}", name,
                                  fmt::join(names, ", ")));
  }
  if (p.coalesce)
    return base::fail(errc::unsupported,
                      "the host redis decides where its values are: it has no coalescing memory");
  if (const auto valid = workloads::make_workload(name, p); !valid)
    return std::unexpected(valid.error());
  return found->make(p);
}

}  // namespace stele::bench::redis
