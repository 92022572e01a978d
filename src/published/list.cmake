# The mechanisms of libstele_published; see src/tx/mechanism/list.cmake.
set(STELE_PUBLISHED_MECHANISMS
    "base|base_log|published/base.h|ordered_writes|log, commit record, home, cut: a fence after each"
    "base-published|base_published|published/base.h|ordered_writes|base with a record of 16 bytes for each word"
    "redo|redo|published/redo.h|torn_bit|torn-bit redo log, home written back in the commit"
    "redo-async|redo_async|published/redo_async.h|torn_bit|torn-bit redo log, home written back in the background"
    "xil|xil|published/blurred/blurred.h|lines_or_blocks|execution in log\; home written back in the commit"
    "vcbp|vcbp|published/redo_async.h|torn_bit|volatile checkpoint with bulk persistence, over a streamed log"
    "blurred|blurred|published/blurred/blurred.h|lines_or_blocks|execution in log and volatile checkpoint"
    "adaptive|adaptive|published/blurred/blurred.h|lines_or_blocks|blurred or vcbp, whichever is better on this medium and workload"
    "undo|undo|published/redo.h|torn_bit|torn-bit undo log, home written back in the commit"
    "redo-published|redo_published|published/published.h|torn_bit|redo as published: each store is logged by itself"
    "undo-published|undo_published|published/published.h|torn_bit|undo as published: each old value is durable before the store"
    "archapt-undo|archapt_undo|published/archapt/archapt.h|archapt_undo|undo log\; home flushed late or, covered by checksums, not at all"
    "archapt-redo|archapt_redo|published/archapt/archapt.h|archapt_redo|redo log\; home flushed late or, covered by checksums, not at all"
    "log_structured|log_structured|published/log_structured/log_structured.h|chunks|the log is the only home: one fence a commit, cleaning in the background")
stele_mechanism_list(published_list.h STELE_EACH_PUBLISHED STELE_PUBLISHED_MECHANISMS)
stele_mechanism_logs(published_logs.h STELE_EACH_PUBLISHED_LOGS STELE_PUBLISHED_MECHANISMS)
