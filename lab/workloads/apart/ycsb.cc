// ycsb-a to ycsb-f on ordinary memory.
#include <workloads/apart/entries.h>
#include <workloads/apart/plain_run.h>
#include <workloads/ycsb_kind.h>

namespace stele::workloads {

namespace ycsb {
namespace {

template <char Letter>
constexpr apart_entry entry_of = {mixes[Letter - 'a'].name, make<Letter, volatile_run, plain_run>};

}  // namespace
}  // namespace ycsb

constinit const apart_entry ycsb_apart[] = {ycsb::entry_of<'a'>, ycsb::entry_of<'b'>,
                                            ycsb::entry_of<'c'>, ycsb::entry_of<'d'>,
                                            ycsb::entry_of<'e'>, ycsb::entry_of<'f'>};

}  // namespace stele::workloads
