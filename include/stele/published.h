// The published mechanisms: base, base-published, redo, redo-async, xil, vcbp, blurred, adaptive,
// undo, redo-published, undo-published, archapt-undo, archapt-redo, log_structured. They are in a
// library of their own, stele::published (libstele_published.a); a page for each is in
// docs/protocol/.
//
//   stele::use_published();
//   auto pool = stele::pool<counter>::open(
//       "counter.stele", {.create_size = 64 << 20, .engine = {.mechanism = "redo"}});
//
// Libstele itself has `default` and `none`, and so have C, Python, SQLite and Redis.
#pragma once

namespace stele {

// From here on pools can be opened with these mechanisms, and pools that they have left open are
// recovered. A second call does nothing. Thread-safe.
void use_published();

}  // namespace stele
