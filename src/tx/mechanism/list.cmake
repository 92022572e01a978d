# The mechanisms of the library, in the order in which they are listed: name | class template over Media | its header in src | its log_kind | what it
# is. A line compiles a mechanism for every medium of the library and of the laboratory. Those of libstele_published are in src/published/list.cmake.
set(STELE_MECHANISMS
    "default|default_mechanism|tx/mechanism/default_mechanism.h|torn_bit|one streamed record and one fence a commit, none an ordered one\; home written back in the background"
    "none|none|tx/mechanism/none.h|none|no persistence: the ceiling")

# stele_mechanism_sources(VARIABLE LIST TEMPLATE FOLDER): a file for each mechanism, from a template: all in one file would take minutes and
# gigabytes to compile.
function(stele_mechanism_sources variable list template folder)
  set(sources "")
  foreach(line IN LISTS ${list})
    string(REPLACE "|" ";" fields "${line}")
    list(POP_FRONT fields name class header logs)
    set(summary "")
    string(REGEX MATCH "[^|]*$" summary "${line}")
    string(REPLACE "-" "_" id "${name}")
    configure_file(${template} ${folder}/${id}.cc @ONLY)
    list(APPEND sources ${folder}/${id}.cc)
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# stele_mechanism_list(FILE MACRO LIST): a header with MACRO(X), which is X(id) for each mechanism.
function(stele_mechanism_list file macro list)
  set(each "")
  foreach(line IN LISTS ${list})
    string(REGEX MATCH "^[^|]*" id "${line}")
    string(REPLACE "-" "_" id "${id}")
    string(APPEND each " X(${id})")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/mechanisms/${file} CONTENT "// Made from the list of mechanisms.\n#define ${macro}(X)${each}\n")
endfunction()

# stele_mechanism_logs(FILE MACRO LIST): a header with MACRO(X), which is X("name", log_kind) for each mechanism.
function(stele_mechanism_logs file macro list)
  set(each "")
  foreach(line IN LISTS ${list})
    string(REPLACE "|" ";" fields "${line}")
    list(POP_FRONT fields name class header logs)
    string(APPEND each " X(\"${name}\", ${logs})")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/mechanisms/${file} CONTENT "// Made from the list of mechanisms.\n#define ${macro}(X)${each}\n")
endfunction()
stele_mechanism_list(mechanism_list.h STELE_EACH_MECHANISM STELE_MECHANISMS)
