// What a power failure may leave of a file: for each sector of 512 bytes, the versions that it has
// had since it was last known to be durable.
//
// A sector is written whole or not at all. A store goes to a mapped or cached page, which the
// kernel may write at any moment: the sector may have any version from the durable one on. A store
// wider than 8 bytes stores word after word. The kernel may also write a mapped page while it
// changes, so that lines of one sector have different versions; a few of these mixtures are options
// of such a sector. A stream is a synchronous write that has begun: its sectors are old or new
// until it returns, which is the thread's next fence. A sync is a flush of the pages that its
// thread finds dirty, and a fence when it returns. Nothing else makes anything durable. A failed
// sync or write has no fence.
#pragma once

#include <explore/media_model.h>

#include <array>

namespace stele::explore {

class sector_model final : public media_model {
 public:
  static constexpr std::size_t sector_size = 512;

  explicit sector_model(std::size_t size) : sectors_(size / sector_size) {}

  void start(hashed_image& durable) override;
  void store(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) override;
  void stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) override;
  void flush(unsigned thread, std::uint64_t offset, std::uint64_t size) override;
  std::span<const std::uint32_t> fence(unsigned thread) override;

  std::span<const std::uint32_t> pending() const noexcept override { return pending_; }
  std::uint64_t options(std::uint32_t sector) const noexcept override;
  void put(hashed_image& image, std::uint32_t sector, std::uint64_t option) const noexcept override;
  void add_stale(const hashed_image& image, std::uint32_t sector,
                 std::vector<std::uint32_t>& lines) const override;
  std::uint64_t unit_size() const noexcept override { return sector_size; }
  const char* unit_name() const noexcept override { return "sector"; }
  std::vector<store_outcome> store_outcomes(std::uint32_t sector,
                                            std::uint64_t option) const override;

 private:
  static constexpr std::size_t lines_in_sector = sector_size / line_size;
  static constexpr std::uint64_t mixtures = 4;  // options a sector

  struct sector_version {
    std::uint64_t number;  // in program order of the whole run
    bool streamed;
    std::array<std::byte, sector_size> bytes;
  };
  struct sector_versions {
    std::vector<sector_version> versions;
    // A bit for each changed line, when several changed by stores, not by one write.
    unsigned mixed = 0;
  };
  struct unfenced {
    std::uint32_t sector;
    std::uint64_t through;  // covers versions up to this number
  };

  void change(std::uint32_t sector, std::size_t at, std::span<const std::byte> bytes,
              bool streamed);
  void make_durable(std::uint32_t sector, std::uint64_t through);
  std::vector<unfenced>& unfenced_by(unsigned thread);
  void note_mixed(std::uint32_t sector) noexcept;
  // Which version a line of the sector has in an option: 0 is the durable one, i the i-th after it.
  std::size_t version_of(std::uint32_t sector, std::uint64_t option,
                         std::size_t line) const noexcept;
  const std::byte* content(std::uint32_t sector, std::size_t version) const noexcept;

  hashed_image* durable_ = nullptr;
  std::vector<sector_versions> sectors_;
  std::vector<std::uint32_t> pending_, changed_;
  // By thread: sectors flushed or streamed since its last fence.
  std::vector<std::vector<unfenced>> unfenced_;
  std::uint64_t number_ = 0;
};

}  // namespace stele::explore
