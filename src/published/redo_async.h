// redo-async: one fence a commit; home is made durable and the logs are truncated later, for the
// whole pool at once. Page: docs/protocol/redo-async.md. Source: Volos, Tack and Swift, "Mnemosyne"
// (2011), asynchronous truncation. The pool-wide watermark is a departure: if one thread's log were
// truncated alone, recovery would replay an older value from another thread's log over the new one.
//
// vcbp is the same without a background thread: the commit that finds its log full does the bulk
// persistence. Page: docs/protocol/vcbp.md. Source: Lu, Shu and Sun, "Blurred Persistence" (2016),
// section 3.3.
//
// Both are the durable commit of `default`. Its ordered commits are durable when they return here.
// Truncation reads the logs of redo-async back; of vcbp it takes the lines that commits have
// queued.
#pragma once

#include <tx/mechanism/default_mechanism.h>

namespace stele::detail {

template <class Media>
using redo_async =
    volatile_checkpoint<Media, private_log<Media, false>,
                        checkpoint_variant{
                            .ordered = false, .in_background = true, .where = dirty_lines::in_log}>;
template <class Media>
using vcbp =
    volatile_checkpoint<Media, private_log<Media, true>,
                        checkpoint_variant{
                            .ordered = false, .in_background = false, .owner_writes_back = false}>;

}  // namespace stele::detail
