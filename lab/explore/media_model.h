// What a crash may leave of a medium: units, each with numbered contents that it may have until
// they are durable.
//
// Two media are explored: memory, with lines as units (crash_model.h), and files, with sectors as
// units (sector_model.h). Option 0 of a unit is the durable content, its last option has everything
// that was stored. Units are independent. A unit with nothing pending has only option 0.
#pragma once

#include <explore/hashed_image.h>

#include <cstdint>
#include <span>
#include <vector>

namespace stele::explore {

class media_model {
 public:
  virtual ~media_model() = default;

  // Everything in `durable` is durable; nothing is pending.
  virtual void start(hashed_image& durable) = 0;

  virtual void store(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void flush(unsigned thread, std::uint64_t offset, std::uint64_t size) = 0;
  // Makes durable, in the image given to start(), what the fence covers. Returns the units that
  // changed there; valid until the next fence.
  virtual std::span<const std::uint32_t> fence(unsigned thread) = 0;
  std::span<const std::uint32_t> bulk(unsigned thread, std::uint64_t offset, std::uint64_t size) {
    flush(thread, offset, size);
    return fence(thread);
  }

  // The units with pending stores, in the order of each unit's first pending store.
  virtual std::span<const std::uint32_t> pending() const noexcept = 0;
  // How many numbered contents a unit has: at least 2 when it is pending. Several may be equal.
  virtual std::uint64_t options(std::uint32_t unit) const noexcept = 0;
  // Gives a unit of `image` the content of an option.
  virtual void put(hashed_image& image, std::uint32_t unit,
                   std::uint64_t option) const noexcept = 0;
  // Adds the lines of a unit that are not in `image` as they were stored last.
  virtual void add_stale(const hashed_image& image, std::uint32_t unit,
                         std::vector<std::uint32_t>& lines) const = 0;

  virtual std::uint64_t unit_size() const noexcept = 0;
  virtual const char* unit_name() const noexcept = 0;
  struct store_outcome {
    std::uint64_t offset;
    std::uint64_t bits, mask;
    bool streamed, kept;
  };
  // Which stores an option keeps and which it loses.
  virtual std::vector<store_outcome> store_outcomes(std::uint32_t unit,
                                                    std::uint64_t option) const = 0;
};

}  // namespace stele::explore
