// Why a pool is poisoned, in words.
#include <base/assert.h>
#include <fmt/format.h>
#include <tx/pool_state.h>

#include <system_error>

namespace stele::detail {

namespace {

constexpr unsigned cause_shift = 24;

std::string with_number(std::string_view what, int error_number) {
  if (error_number == 0) return std::string(what);
  return fmt::format("{} ({})", what, std::generic_category().message(error_number));
}

}  // namespace

void pool_state::poison(poison_cause why, int error_number) noexcept {
  STELE_ASSERT(error_number >= 0 && error_number < 1 << cause_shift);
  STELE_ASSERT(why != poison_cause::lost_page || error_number == 0);
  std::uint32_t none = 0;
  poisoned_by.compare_exchange_strong(none, static_cast<std::uint32_t>(why) << cause_shift |
                                                static_cast<std::uint32_t>(error_number));
  poisoned.store(true);
}

std::string pool_state::poison_reason() const {
  const std::uint32_t by = poisoned_by.load();
  const int error_number = static_cast<int>(by & ((1u << cause_shift) - 1));
  STELE_ASSERT_ALWAYS(by >> cause_shift <= static_cast<std::uint32_t>(poison_cause::overwritten));
  switch (static_cast<poison_cause>(by >> cause_shift)) {
    case poison_cause::write_failed:
      return with_number("an earlier write failed", error_number);
    case poison_cause::fork:
      return "this is a child of fork() of the process that opened it";
    case poison_cause::overwritten:
      return "another program has changed the file while it was open, or copied another pool over "
             "it";
    case poison_cause::lost_page:
      break;
  }
  if (!file.check_not_truncated()) return "the file has been truncated while it was open";
  return with_number(
      "part of the file is gone or unreadable, or a damaged pointer led past its end",
      file.space_error());
}

}  // namespace stele::detail
