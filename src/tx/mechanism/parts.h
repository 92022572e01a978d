// The parts that most mechanisms use: compiled once for each medium, and not again with each
// mechanism.
#pragma once

#include <tx/bulk_write_back.h>
#include <tx/log/recovery.h>

#define STELE_PARTS(words, ...)                     \
  words template class home_checksums<__VA_ARGS__>; \
  words template class log_lanes<__VA_ARGS__>;      \
  words template class log_recovery<__VA_ARGS__>;   \
  words template class log_truncation<__VA_ARGS__>; \
  words template class bulk_write_back<__VA_ARGS__>;
// In namespace stele::detail. The argument is a medium.
#define STELE_DECLARE_PARTS(...) STELE_PARTS(extern, __VA_ARGS__)
#define STELE_INSTANTIATE_PARTS(...) STELE_PARTS(, __VA_ARGS__)
