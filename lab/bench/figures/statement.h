// How to compute a publication's statement about its figure from a chart measured here.
#pragma once

namespace stele::bench::stated {

enum class metric {
  gain,            // %: throughput of `a` over that of `b`, minus 1
  ratio,           // throughput of `a` over that of `b`
  loss,            // %: how much lower the throughput of `a` is than that of `b`
  time_saved,      // %: of the time of a transaction with `b`, the part that `a` saves
  overhead_saved,  // %: of that time minus the time with none, the part that `a` saves
  gap_closed,      // %: of the throughput gap between `b` and none, the part that `a` closes
  value,           // the value of `a`
  extent,          // largest over smallest value of `a` along the axis
};

// `a` and `b` are series of `panel`; "" as `a` with extent: each series. `at`: a place of the axis;
// "": each place.
struct statement {
  const char *figure, *what, *stated, *unit;
  metric how;
  const char *panel, *a, *b, *at;
};

}  // namespace stele::bench::stated
