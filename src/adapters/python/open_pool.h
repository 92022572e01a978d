// A pool that Python has opened; its root is a document_dict.
#pragma once

#include <base/assert.h>
#include "transactions.h"

#include <stele/document.h>

namespace stele::python {

class open_pool final : public transactions {
 public:
  open_pool(std::string path, detail::pool_handle handle, const open_options& options)
      : transactions(std::move(path), handle.core(), options),
        handle_(std::move(handle)),
        pickles_(options.pickles) {
    STELE_ASSERT_ALWAYS(handle_->root() != nullptr);
    STELE_ASSERT_ALWAYS(&handle_->core() == &core());
  }
  ~open_pool() { open_pool::release_core(); }  // called with the GIL held

  // Whether values of other types are pickled (pickles.h).
  bool pickles() const noexcept { return pickles_; }
  document_dict& root() const noexcept {
    STELE_ASSERT(handle_.has_value());
    return *static_cast<document_dict*>(handle_->root());
  }

 private:
  void release_core() override {
    STELE_ASSERT(holds_gil());
    std::optional<detail::pool_handle> last = std::exchange(handle_, std::nullopt);
    const nb::gil_scoped_release gil_released;
    last.reset();
  }

  std::optional<detail::pool_handle> handle_;  // empty: the pool has been closed
  const bool pickles_;
};

}  // namespace stele::python
