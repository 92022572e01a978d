// A user's structure as a workload of the explorer.
//
// An operation of the explorer is a seed, from which the user's draw() makes
// the operations of one transaction each time. A digest is the number of a
// model: of the one that a state should be, or, of a pool, of the one that
// check() takes it for.
#pragma once

#include <stele/testing.h>
#include <workloads/workload.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stele::testing {

// The digest of a pool that is as no model. Models have small numbers.
inline constexpr std::uint64_t no_model = ~std::uint64_t{0};

// What check() said of the last pool that was as no model: of each model by its
// number, and of the one that it should have been, if that was known.
struct mismatch {
  std::vector<std::string> said;
  std::string of_expected;
};

class user_workload final : public workloads::workload {
 public:
  // `last` gets what check() says, if it is not null.
  user_workload(std::string name, std::unique_ptr<detail::structure> of, unsigned operations,
                std::shared_ptr<mismatch> last = nullptr)
      : name_(std::move(name)), of_(std::move(of)), operations_(operations), last_(last) {}

  std::string_view name() const override { return name_; }
  std::size_t root_size() const override { return of_->root_size(); }
  void attach(stele::detail::pool_handle handle) override {
    now_.reset();
    of_->attach(std::move(handle));
  }
  void detach() override { of_->detach(); }
  stele::detail::runtime& core() override { return of_->core(); }

  [[nodiscard]] result<> set_up() override;
  workloads::operation draw(base::rng& random) const override {
    return {workloads::operation::kind::put, random(), 0};
  }
  // Errors: what the user's function returns or throws; cancelling is none.
  [[nodiscard]] result<> apply(std::span<const workloads::operation> operations) override;
  [[nodiscard]] result<std::uint64_t> digest() override;
  void visit_blocks(const workloads::block_visit& visit) override;
  std::unique_ptr<workloads::model> make_model() const override;

  detail::structure& of() const noexcept { return *of_; }
  // The number of the model after a transaction with this seed.
  std::uint64_t model_after(std::uint64_t model, std::uint64_t seed) const;
  bool draws_the_same(std::uint64_t seed, std::uint64_t model) const {
    return of_->draws_the_same(seed, operations_, model);
  }
  // "operation 7 (insert 5)", where 7 operations are then done.
  std::string describe(std::uint64_t position, const workloads::operation& op) const;

 private:
  std::string name_;
  std::unique_ptr<detail::structure> of_;
  unsigned operations_;
  std::shared_ptr<mismatch> last_;
  // The model that the attached pool was as, and then what its operations made
  // of that; empty until the first digest. `recovered_` is the first digest of
  // the last pool: the next is near it.
  std::optional<std::uint64_t> now_;
  std::uint64_t recovered_ = 0;
  // By model and seed.
  mutable std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> after_;
};

// Calls a user's function and returns its value, or as an error what it throws;
// `what` names it.
template <class Body>
auto call_user(const char* what, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const failure& f) {
    return std::unexpected(f.why());
  } catch (const std::exception& e) {
    return std::unexpected(
        error{errc::invalid_argument, std::string(what) + " throws: " + e.what()});
  } catch (...) {
    return std::unexpected(
        error{errc::invalid_argument, std::string(what) + " throws what is no std::exception"});
  }
}

}  // namespace stele::testing
