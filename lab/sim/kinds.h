// The kinds of a part that a machine file chooses by name: the laboratory's, and after them those
// of plug-ins. Adding one is not thread-safe.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stele::sim {

// Kind has a member `name`, whose text lasts as long as the program.
template <class Kind>
class kinds {
 public:
  explicit kinds(std::span<const Kind> built_in) {
    for (const Kind& k : built_in) add(k);
  }

  // Null when there is none. Valid for ever.
  const Kind* find(std::string_view name) const noexcept {
    const member* m = member_named(name);
    return m == nullptr ? nullptr : &m->kind;
  }
  // The file of the plug-in that has it; empty for the laboratory's own and for unknown names.
  std::string plugin_of(std::string_view name) const {
    const member* m = member_named(name);
    return m == nullptr ? "" : m->plugin;
  }
  // In order of addition. Valid until the next one.
  std::span<const std::string_view> names() const noexcept { return names_; }
  std::string listed() const {
    std::string all;
    for (const std::string_view n : names_) all += (all.empty() ? "" : ", ") + std::string(n);
    return all;
  }

  // Precondition: the name is not taken.
  void add(const Kind& k, const std::string& plugin = {}) {
    members_.push_back({k, plugin});
    names_.emplace_back(k.name);
  }

 private:
  struct member {
    Kind kind;
    std::string plugin;
  };
  const member* member_named(std::string_view name) const noexcept {
    for (const member& m : members_)
      if (m.kind.name == name) return &m;
    return nullptr;
  }

  std::deque<member> members_;
  std::vector<std::string_view> names_;
};

}  // namespace stele::sim
