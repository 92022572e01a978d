// Native runs: a workload's structure without persistence, used by logical threads in turn and
// recorded on a tape.
//
// The tape depends on the plan only. One host thread runs operation i as thread i modulo the number
// of threads; each logical thread has its own generator. An operation is invoked, begin, its loads,
// stores and compute, commit, returned; each mark has the operation's number as its argument.
// Filling the structure is not on the tape. With `bytes`, the tape begins with the filled memory as
// image events, and stores carry their bytes. docs/format/native.md explains the tape.
#pragma once

#include <workloads/apart/traced_memory.h>
#include <workloads/run.h>

#include <bit>
#include <functional>

namespace stele::workloads {

struct native_plan {
  parameters params{};  // its value size is a power of two from 8 to 1 MiB
  unsigned threads = 1;
  std::uint64_t operations = 10'000;
  std::uint64_t seed = 1;  // of the operations
  bool bytes = false;
  // Every so many operations, one asks to commit in order; 0: none does.
  std::uint64_t in_order_every = 0;
  std::optional<native_costs> costs = std::nullopt;  // nullopt: the costs measured for the workload
};

class native_run {
 public:
  virtual ~native_run() = default;
  virtual void set_up() = 0;
  virtual operation draw(base::rng& random) const = 0;
  virtual void apply(const operation& op) = 0;
  // The digest of the content; equal to the model's after the same operations.
  virtual std::uint64_t digest() = 0;
  virtual std::unique_ptr<model> make_model() const = 0;

  native_space& space() noexcept { return *space_; }

 protected:
  explicit native_run(std::unique_ptr<native_space> space) : space_(std::move(space)) {}

 private:
  std::unique_ptr<native_space> space_;
};

// Makes a filled structure: sps, hash, rbtree, bptree, sdg, ssca2. Errors: not_found,
// invalid_argument, io (no addresses), full.
[[nodiscard]] result<std::unique_ptr<native_run>> make_native(std::string_view workload,
                                                              const native_plan& plan);
native_costs native_costs_of(std::string_view workload) noexcept;

// Options for the tape of such a run.
media::tape_options native_shape(native_run& run, const native_plan& plan);

// Writes the plan's operations to the tape while `should_continue(operations done)` is true, and
// appends them to `performed` if given. Errors: full.
[[nodiscard]] result<> record_native(native_run& run, std::string_view workload,
                                     const native_plan& plan, media::tape_writer& tape,
                                     const std::function<bool(std::uint64_t)>& should_continue,
                                     std::vector<operation>* performed = nullptr);

template <class Kind>
class native_of final : public native_run {
  using root = typename Kind::template root<traced_memory>;

 public:
  native_of(const parameters& p, std::unique_ptr<native_space> space)
      : native_run(std::move(space)), keys_(p) {
    const native_space::scope guard(this->space());
    root_ = traced_memory::make<root>();
  }

  void set_up() override {
    const native_space::scope guard(space());
    Kind::prepare(*root_, keys_);
    for (std::uint64_t i = 0; i < keys_.size(); ++i) Kind::fill(*root_, keys_, i);
  }
  operation draw(base::rng& random) const override { return Kind::draw(keys_, random); }
  void apply(const operation& op) override {
    const native_space::scope guard(space());
    run_operation<Kind>(*root_, keys_, op);
  }
  std::uint64_t digest() override {
    const native_space::scope guard(space());
    return Kind::digest(*root_);
  }
  std::unique_ptr<model> make_model() const override { return Kind::make_model(keys_); }

 private:
  key_space keys_;
  root* root_ = nullptr;  // destroyed with the space
};

inline constexpr std::size_t largest_native_value = std::size_t{1} << 20;

// Makes a native_of<Kind<value size>>. The size is a power of two from 8 to largest_native_value.
template <template <std::size_t> class Kind, std::size_t N = 8>
std::unique_ptr<native_run> make_native_sized(const parameters& p,
                                              std::unique_ptr<native_space> space) {
  if constexpr (N < largest_native_value) {
    if (p.value_size != N) return make_native_sized<Kind, 2 * N>(p, std::move(space));
  }
  return std::make_unique<native_of<Kind<N>>>(p, std::move(space));
}

}  // namespace stele::workloads
