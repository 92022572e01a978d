// What a program compiled with STELE_DEBUG is told: pointers that lead out of their pool, uses of
// destroyed objects, leaks when a pool is closed. See docs/guide/debug.md.
#include <base/assert.h>
#include <fmt/format.h>
#include <stele/leaks.h>
#include <tx/runtime.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace stele::detail {

runtime* runtime_at(std::uintptr_t address);
bool is_in_used_block(std::uintptr_t address);

namespace {

struct checks {
  bool pointers, leaks;
};

// The environment switches checks off in a program that has them.
checks wanted() noexcept {
  static const checks all = [] {
    const char* const value = std::getenv("STELE_DEBUG");
    const std::string_view said = value == nullptr ? "" : value;
    return checks{said != "off" && said != "leaks", said != "off" && said != "pointers"};
  }();
  return all;
}

bool in_running_pool(std::uintptr_t address) noexcept {
  return address - this_access.pool_base < this_access.size;
}

std::uint64_t offset_of(std::uintptr_t address) noexcept {
  STELE_ASSERT(in_running_pool(address));
  return address - this_access.pool_base;
}

const std::string& path_of_running() {
  const runtime* const running = runtime_at(this_access.pool_base);
  STELE_ASSERT(running != nullptr);
  return running->state().file.path();
}

[[noreturn]] void refuse(std::string why) {
  throw failure({errc::invalid_argument, std::move(why)});
}

std::string text_of(const std::vector<pool_block>& blocks) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, blocks.size()); ++i) {
    text += fmt::format("{}offset {}", i == 0 ? "" : ", ", blocks[i].offset);
    if (blocks[i].size_bytes != 0) text += fmt::format(" ({} bytes)", blocks[i].size_bytes);
  }
  return blocks.size() > most ? fmt::format("{} and {} more", text, blocks.size() - most) : text;
}

void report(const std::string& path, const leak_report& found) {
  if (!found.leaked.empty())
    fmt::print(stderr,
               "stele: {}: {} blocks leaked: they are in use, and nothing that the root's "
               "visit_blocks() names leads to them: {}\n",
               path, found.leaked.size(), text_of(found.leaked));
  if (!found.dangling.empty())
    fmt::print(stderr,
               "stele: {}: {} pointers to destroyed objects: visit_blocks() names {}, where no "
               "block in use begins\n",
               path, found.dangling.size(), text_of(found.dangling));
}

}  // namespace

void verify_use(const void* bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes);
  if (!in_running_pool(address) || !wanted().pointers || is_in_used_block(address)) return;
  refuse(
      fmt::format("{}: an object at offset {} is used, but no object is there: it has been "
                  "destroyed, or the pointer to it is wrong",
                  path_of_running(), offset_of(address)));
}

void verify_target(const void* field, const void* target) {
  verify_use(field);
  const auto from = reinterpret_cast<std::uintptr_t>(field),
             to = reinterpret_cast<std::uintptr_t>(target);
  if (target == nullptr || !in_running_pool(from) || !wanted().pointers) return;
  if (in_running_pool(to) && is_in_used_block(to)) return;
  const runtime* const other = runtime_at(to);
  refuse(fmt::format(
      "{}: the field at offset {} would point to {}; a field<T*> points into an object of its own "
      "pool, or to null",
      path_of_running(), offset_of(from),
      in_running_pool(to) ? fmt::format("offset {}, where no object is: it has been destroyed, or "
                                        "the pointer leads past the end of one",
                                        offset_of(to))
      : other != nullptr  ? fmt::format("another pool, {}", other->state().file.path())
                          : "memory outside of the pool, which is gone after this run"));
}

void report_leaks_at_close(runtime& r, const void* root,
                           std::function<void(const block_visitor&)> walk) {
  if (!wanted().leaks) return;
  r.before_close([&r, root, walk = std::move(walk)] {
    if (const auto found = find_leaks(r, root, walk)) report(r.state().file.path(), *found);
  });
}

}  // namespace stele::detail
