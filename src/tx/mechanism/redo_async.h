// redo-async: one fence a commit; home is made durable and the logs are truncated later, for the
// whole pool at once. Page: docs/protocol/redo-async.md. Source: Volos, Tack and Swift, "Mnemosyne"
// (2011), asynchronous truncation. The pool-wide watermark is a departure: if one thread's log were
// truncated alone, recovery would replay an older value from another thread's log over the new one.
#pragma once

#include <tx/mechanism/bulk.h>

namespace stele::detail {

template <class Media>
class redo_async final : public bulk_engine<Media> {
 public:
  using bulk_engine<Media>::bulk_engine;

  [[nodiscard]] result<> reserve_log(transaction& t) override {
    return this->prepare_lines(this->lanes_[t.log()], t);
  }
  bool commit(transaction& t, std::uint64_t txid) override {
    return this->commit_lines(this->lanes_[t.log()], t, txid, [] {});
  }

 private:
  bool may_run_in_background() const noexcept override { return true; }
};

}  // namespace stele::detail
