// Passes the explorer's calls to the user's functions.
#include <fmt/format.h>
#include <testing/user_workload.h>

namespace stele::testing {

using workloads::operation;

namespace {

// The model after the operations so far, by its number.
class numbered_model final : public workloads::model {
 public:
  explicit numbered_model(const user_workload& w) : workload_(w), now_(w.of().first_model()) {}
  void apply(const operation& op) override {
    if (!only_reads(op)) now_ = workload_.model_after(now_, op.a);
  }
  std::uint64_t digest() const override { return now_; }

 private:
  const user_workload& workload_;
  std::uint64_t now_;
};

}  // namespace

result<> user_workload::set_up() {
  return call_user("set_up()", [&] { return of_->set_up(); });
}

result<> user_workload::apply(std::span<const operation> operations) {
  for (const operation& op : operations) {
    if (only_reads(op)) continue;  // it did not fit when the run was recorded
    auto done =
        call_user("apply()", [&] { return of_->apply(op.a, operations_, commit_durability()); });
    if (!done && done.error().code != errc::cancelled) return done;
    if (now_) now_ = model_after(*now_, op.a);
  }
  return {};
}

std::uint64_t user_workload::model_after(std::uint64_t model, std::uint64_t seed) const {
  const auto [at, fresh] = after_.try_emplace({model, seed}, no_model);
  if (fresh) at->second = of_->model_after(model, seed, operations_);
  return at->second;
}

// Models are tried from the likeliest on: their numbers grow with the time of
// the run.
result<std::uint64_t> user_workload::digest() {
  const std::uint64_t models = of_->models();
  const std::uint64_t likeliest = now_.value_or(recovered_);
  std::vector<std::string> said(last_ != nullptr ? models : 0);
  for (std::uint64_t distance = 0; distance < models; ++distance) {
    for (const std::uint64_t number : {likeliest + distance, likeliest - distance}) {
      if (number >= models) continue;
      auto wrong = call_user("check()", [&] { return of_->check(number); });
      if (!wrong) return std::unexpected(wrong.error());
      if (wrong->empty()) {
        if (!now_) recovered_ = number;
        now_ = number;
        return number;
      }
      if (last_ != nullptr) said[number] = std::move(*wrong);
      if (distance == 0) break;
    }
  }
  if (last_ != nullptr) *last_ = {said, now_ ? said[*now_] : ""};
  return no_model;
}

void user_workload::visit_blocks(const workloads::block_visit& visit) {
  const auto done = call_user("visit_blocks()", [&] { return of_->visit_blocks(visit); });
  if (!done) throw failure(done.error());
}

std::unique_ptr<workloads::model> user_workload::make_model() const {
  return std::make_unique<numbered_model>(*this);
}

std::string user_workload::describe(std::uint64_t position, const operation& op) const {
  const std::string words = of_->describe(op.a, operations_);
  return words.empty() ? fmt::format("operation {}", position)
                       : fmt::format("operation {} ({})", position, words);
}

}  // namespace stele::testing
