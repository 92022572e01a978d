// A workload on the stores of a stele::kv.
#pragma once

#include <stele/kv.h>
#include <workloads/workload.h>

#include <optional>

namespace stele::workloads {

class workload_on_kv : public workload {
 public:
  std::size_t root_size() const override { return kv::root_size(); }
  void attach(detail::pool_handle pool) override {
    auto opened = kv::from_handle(std::move(pool));
    if (!opened) throw failure(opened.error());
    kv_.emplace(std::move(*opened));
  }
  void detach() override { kv_.reset(); }
  detail::runtime& core() override { return kv_->core(); }
  void visit_blocks(const block_visit& visit) override {
    const auto done = kv_->read([&](const kv::view&) { kv_->visit_blocks(visit); });
    if (!done) throw failure(done.error());
  }

 protected:
  template <class Result>
  static result<> without_value(Result done) {
    return done ? result<>{} : std::unexpected(std::move(done.error()));
  }

  std::optional<kv> kv_;
};

}  // namespace stele::workloads
