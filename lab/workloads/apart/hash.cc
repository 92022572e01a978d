// hash on ordinary memory and in native runs; word_hash on ordinary memory.
#include <workloads/apart/entries.h>
#include <workloads/apart/native.h>
#include <workloads/apart/plain_run.h>
#include <workloads/hash_kind.h>

namespace stele::workloads {

constinit const apart_entry hash_apart = {"hash", make_sized<volatile_run, plain_run, hash_kind>,
                                          make_native_sized<hash_kind>};

constinit const apart_entry word_hash_apart = {"word_hash",
                                               make_sized<volatile_run, plain_run, word_hash_kind>};

}  // namespace stele::workloads
