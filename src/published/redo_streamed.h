// redo-streamed: redo whose home stores bypass the cache where they can: a line that the
// transaction has stored whole is streamed, any other is stored and flushed. For large values, of
// which the cache need not keep a copy. Page: docs/protocol/redo-streamed.md. No published source:
// the order is that of redo.
#pragma once

#include <base/assert.h>
#include <published/redo.h>

namespace stele::detail {

template <class Media>
class streamed_home : public home_writer<Media> {
 public:
  using home_writer<Media>::home_writer;

  // Durable after the medium's next fence; visible to other threads then, too. A line that is
  // stored in part is not streamed: its other bytes may change meanwhile, because a line lock does
  // not cover the states of blocks.
  void store_flushed(Media& media, const transaction& t, home_checksums<Media>& sums) const {
    this->for_each_line(media, t, sums, [&](const written_line& line) {
      std::byte* const at = this->file_.at(line.offset);
      STELE_ASSERT(line.offset % line_size == 0);  // redo-streamed.md, 3: a stream writes a line
      if (line.mask == ~std::uint64_t{0}) return media.stream(at, line.words.data(), line_size);
      this->store(media, line);
      media.flush(at, line_size);
    });
  }
};

template <class Media>
using redo_streamed = home_in_commit<Media, logged_values::new_ones, streamed_home<Media>>;

}  // namespace stele::detail
