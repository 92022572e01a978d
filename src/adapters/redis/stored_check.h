// Checks of what a pool of Redis has. The file may come from anyone, so every link and length is
// looked at before it is followed: a check runs in a bounded walk (stele/detail/bounded_memory.h)
// and claims each block that it reaches, whole. So it reads nothing outside of the heap, visits
// nothing twice, and ends. What it finds sound may be read and changed without further checks.
#pragma once

#include <stele/detail/bounded_memory.h>
#include <stele/hash_map.h>
#include <stele/string.h>

namespace stele::redis {

// Of a text in a block that is claimed. Claims the text's own block.
inline result<> check_text(const stele::string& text) {
  if (auto sound = text.check(); !sound) return sound;
  text.visit_blocks([&](const void* block) { detail::claim_block(block, text.capacity()); });
  return {};
}

// Of a map from texts to values of type V, or, as a set has it, to nothing.
template <class V, class Map>
result<> check_map(const Map& map) {
  using bounded_text = basic_string<bounded_memory>;
  using bounded_map = basic_hash_map<bounded_text, V, bounded_memory>;
  static_assert(sizeof(bounded_map) == sizeof(Map));
  if (auto sound = reinterpret_cast<const bounded_map&>(map).check(); !sound) return sound;
  result<> sound;
  const auto check = [&](const auto&... part) {
    const auto check_part = [&]<class Part>(const Part& p) {
      if constexpr (std::is_same_v<Part, stele::string>)
        if (sound) sound = check_text(p);
    };
    (check_part(part), ...);
  };
  map.for_each(check);
  return sound;
}

}  // namespace stele::redis
