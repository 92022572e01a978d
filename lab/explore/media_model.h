// What a crash may leave of a medium: units, each with numbered contents that it may have, for as
// long as they are not durable.
//
// Two media are explored: memory, whose units are lines (crash_model.h), and files, whose units are
// sectors (sector_model.h). Option 0 of a unit is what is durable, its last option everything that
// was stored. Units are independent. A unit with nothing pending has option 0 alone.
#pragma once

#include <explore/hashed_image.h>

#include <cstdint>
#include <span>
#include <vector>

namespace stele::explore {

class media_model {
 public:
  virtual ~media_model() = default;

  // Everything in `durable` is persistent, nothing is pending.
  virtual void start(hashed_image& durable) = 0;

  virtual void store(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void flush(unsigned thread, std::uint64_t offset, std::uint64_t size) = 0;
  // Settles into the image given to start(). Returns the units that changed there; valid until the
  // next fence.
  virtual std::span<const std::uint32_t> fence(unsigned thread) = 0;
  std::span<const std::uint32_t> bulk(unsigned thread, std::uint64_t offset, std::uint64_t size) {
    flush(thread, offset, size);
    return fence(thread);
  }

  // The units with pending stores, in the order of their first one.
  virtual std::span<const std::uint32_t> pending() const noexcept = 0;
  // How many numbered contents a unit has, at least 2 when it is pending; several may be equal.
  virtual std::uint64_t options(std::uint32_t unit) const noexcept = 0;
  // Gives a unit of `image` the content that an option has.
  virtual void put(hashed_image& image, std::uint32_t unit,
                   std::uint64_t option) const noexcept = 0;
  // Adds the lines of a unit which `image` does not have as they were stored last.
  virtual void add_stale(const hashed_image& image, std::uint32_t unit,
                         std::vector<std::uint32_t>& lines) const = 0;

  virtual std::uint64_t unit_size() const noexcept = 0;
  virtual const char* unit_name() const noexcept = 0;
  struct store_outcome {
    std::uint64_t offset;
    std::uint64_t bits, mask;
    bool streamed, kept;
  };
  // What an option keeps and loses, store by store.
  virtual std::vector<store_outcome> store_outcomes(std::uint32_t unit,
                                                    std::uint64_t option) const = 0;
};

}  // namespace stele::explore
