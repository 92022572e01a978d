// The mark of a pool's root: a word behind the root object that is never 0, so that a root whose
// page was zeroed is not taken for an empty one. docs/format/pool.md is the page for readers.
//
// The home header's root_form names the root that has the mark and the form's version. It is 0 in
// pools of programs before the mark, whose roots have none.
#pragma once

#include <format/pool_layout.h>

namespace stele::format {

// The forms of a root: a plain object; one with a mark. Kept in the low bits of root_form, beside
// the offset of the root, which is a multiple of 8.
inline constexpr std::uint64_t plain_root_form = 0, marked_root_form = 1, root_form_mask = 7;
inline constexpr std::uint64_t root_mark = 0x57E1E'4007ULL;

constexpr std::uint64_t root_mark_offset(std::uint64_t root_offset,
                                         std::uint64_t root_size) noexcept {
  return root_offset + (root_size + 7) / 8 * 8;
}
// Bytes of the block of a root that has a mark.
constexpr std::uint64_t marked_root_size(std::uint64_t root_size) noexcept {
  return root_mark_offset(0, root_size) + 8;
}
// Guarded without the pool's id: a backup has another id and the same root.
constexpr std::uint64_t guarded_root_mark(std::uint64_t root_offset,
                                          std::uint64_t root_size) noexcept {
  return guard(root_mark, 0, root_mark_offset(root_offset, root_size));
}
// The word root_form of a root that has a mark. `at`: the word's own offset.
constexpr std::uint64_t guarded_root_form(std::uint64_t at, std::uint64_t root_offset) noexcept {
  return guard(root_offset | marked_root_form, 0, at);
}

enum class root_verdict : std::uint8_t {
  sound,         // it has its mark, or needs none
  form_damaged,  // root_form does not match its check bits
  form_unknown,  // of a later program
  mark_missing,  // the root was zeroed or overwritten
};

// `word_at(offset)` reads home, whose offsets are below `end`. The root lies below `end`.
template <class WordAt>
root_verdict judge_root(const pool_header& h, std::uint64_t root_offset, std::uint64_t root_size,
                        std::uint64_t end, WordAt&& word_at) {
  const std::uint64_t at = h.home_offset + offsetof(home_header, root_form);
  const auto form = unguard(word_at(at), 0, at);
  if (!form) return root_verdict::form_damaged;
  // 0, or of a root that a program before the mark has replaced in a migration.
  if (*form == 0 || (*form & ~root_form_mask) != root_offset) return root_verdict::sound;
  if ((*form & root_form_mask) != marked_root_form) return root_verdict::form_unknown;
  const std::uint64_t mark_at = root_mark_offset(root_offset, root_size);
  const bool marked =
      mark_at <= end - 8 && word_at(mark_at) == guarded_root_mark(root_offset, root_size);
  return marked ? root_verdict::sound : root_verdict::mark_missing;
}

static_assert(root_mark != 0 && root_mark < guarded_limit && root_mark != home_magic);
static_assert(marked_root_form <= root_form_mask && plain_root_form != marked_root_form);
static_assert(root_mark_offset(4096, 1) == 4104 && root_mark_offset(4096, 8) == 4104 &&
              root_mark_offset(4096, 9) == 4112);
static_assert(marked_root_size(1) == 16 && marked_root_size(64) == 72 && marked_root_size(0) == 8);
static_assert(guarded_root_mark(4096, 8) != guarded_root_mark(4096, 16) &&
                  guarded_root_mark(4096, 8) != 0,
              "a mark belongs to its place");
static_assert(unguard(guarded_root_form(16416, 4096), 0, 16416) == (4096 | marked_root_form));

}  // namespace stele::format
