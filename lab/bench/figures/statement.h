// How a publication's statement about its figure is read off a chart measured here.
#pragma once

namespace stele::bench::stated {

enum class metric {
  gain,            // %: throughput of `a` over that of `b`, less 1
  ratio,           // throughput of `a` over that of `b`
  loss,            // %: by how much the throughput of `a` falls short of that of `b`
  time_saved,      // %: of the time that a transaction takes with `b`, what `a` saves
  overhead_saved,  // %: of that time less the time with none, what `a` saves
  gap_closed,      // %: of the throughput that `b` falls short of none's by, what `a` regains
  value,           // of `a` itself
  extent,          // largest over smallest value of `a` along the axis
};

// `a`, `b` are series, of `panel`; "" as `a` with extent: each series. `at`: a place of the axis;
// "": each.
struct statement {
  const char *figure, *what, *stated, *unit;
  metric how;
  const char *panel, *a, *b, *at;
};

}  // namespace stele::bench::stated
