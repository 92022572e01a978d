# The mechanisms, in the order in which they are listed: name | class template over Media | its header in src | what it is. A line here compiles a
# mechanism for every medium of the library and of the laboratory; commands, tests and benchmarks find it by its name.
set(STELE_MECHANISMS
    "default|default_mechanism|tx/mechanism/default_mechanism.h|one streamed record and one fence a commit, none an ordered one\; home written back in the background"
    "none|none|tx/mechanism/none.h|no persistence: the ceiling"
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

# stele_mechanism_sources(VARIABLE TEMPLATE FOLDER): a file for each mechanism, from a template: all in one file would take minutes and
# gigabytes to compile.
function(stele_mechanism_sources variable template folder)
  set(sources "")
  foreach(line IN LISTS STELE_MECHANISMS)
    string(REPLACE "|" ";" fields "${line}")
    list(POP_FRONT fields name class header)
    set(summary "")
    string(REGEX MATCH "[^|]*$" summary "${line}")
    string(REPLACE "-" "_" id "${name}")
    configure_file(${template} ${folder}/${id}.cc @ONLY)
    list(APPEND sources ${folder}/${id}.cc)
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

set(each "")
foreach(line IN LISTS STELE_MECHANISMS)
  string(REGEX MATCH "^[^|]*" id "${line}")
  string(REPLACE "-" "_" id "${id}")
  string(APPEND each " X(${id})")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/mechanisms/mechanism_list.h CONTENT "// Made from src/tx/mechanism/list.cmake.\n#define STELE_EACH_MECHANISM(X)${each}\n")
