# The mechanisms of libstele_published; see src/tx/mechanism/list.cmake.
set(STELE_PUBLISHED_MECHANISMS
    "base|base_log|published/base.h|log, commit record, home, cut: a fence after each"
    "redo|redo|published/redo.h|torn-bit redo log, home written back in the commit"
    "redo-streamed|redo_streamed|published/redo_streamed.h|redo, but home lines that are stored whole are streamed"
    "redo-async|redo_async|published/redo_async.h|torn-bit redo log, home written back in the background"
    "xil|xil|published/blurred/blurred.h|execution in log\; home written back in the commit"
    "vcbp|vcbp|published/redo_async.h|volatile checkpoint with bulk persistence, over a streamed log"
    "blurred|blurred|published/blurred/blurred.h|execution in log and volatile checkpoint"
    "adaptive|adaptive|published/blurred/blurred.h|blurred or vcbp, whichever is better on this medium and workload"
    "undo|undo|published/redo.h|torn-bit undo log, home written back in the commit"
    "redo-published|redo_published|published/published.h|redo as published: each store is logged by itself"
    "undo-published|undo_published|published/published.h|undo as published: each old value is durable before the store"
    "archapt-undo|archapt_undo|published/archapt/archapt.h|undo log\; home flushed late or, covered by checksums, not at all"
    "archapt-redo|archapt_redo|published/archapt/archapt.h|redo log\; home flushed late or, covered by checksums, not at all"
    "log_structured|log_structured|published/log_structured/log_structured.h|the log is the only home: one fence a commit, cleaning in the background")
stele_mechanism_list(published_list.h STELE_EACH_PUBLISHED STELE_PUBLISHED_MECHANISMS)
