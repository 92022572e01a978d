// Runs a kind of structure (run.h) on ordinary memory.
#pragma once

#include <workloads/apart/volatile.h>
#include <workloads/run.h>

namespace stele::workloads {

template <class Kind>
class plain_run final : public volatile_run {
  using root = typename Kind::template root<plain_memory>;

 public:
  explicit plain_run(const parameters& p, Kind kind = {}) : keys_(p), kind_(std::move(kind)) {}

  void set_up() override {
    Kind::prepare(*root_, keys_);
    for (std::uint64_t i = 0; i < keys_.size(); ++i) kind_.fill(*root_, keys_, i);
  }
  operation draw(base::rng& random) const override { return kind_.draw(keys_, random); }
  void apply(std::span<const operation> operations) override {
    for (const operation& op : operations) run_operation<Kind>(*root_, keys_, op);
  }
  std::uint64_t digest() override { return Kind::digest(*root_); }

 private:
  key_space keys_;
  [[no_unique_address]] Kind kind_;
  std::unique_ptr<root> root_ = std::make_unique<root>();
};

}  // namespace stele::workloads
