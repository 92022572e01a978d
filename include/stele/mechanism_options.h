// Options of single mechanisms: each has a struct in a header of its own, and
// engine_options::tuning holds any number of them, one of a type. A mechanism reads its own and
// ignores the others.
//
//   #include <stele/archapt_options.h>
//   stele::use_published();  // stele/published.h
//   stele::pool_options options{.create_size = 64 << 20, .engine = {.mechanism = "archapt-redo"}};
//   options.engine.tuning.of<stele::archapt_options>().checkpoint_commits = 10'000;
//   auto pool = stele::pool<counter>::open("counter.stele", options);
#pragma once

#include <any>
#include <concepts>
#include <utility>
#include <vector>

namespace stele {

class mechanism_options {
 public:
  mechanism_options() = default;
  template <class... Options>
    requires(sizeof...(Options) > 0 && (!std::same_as<Options, mechanism_options> && ...))
  mechanism_options(Options... options) {
    ((of<Options>() = std::move(options)), ...);
  }

  // The options of this type, to be changed; the defaults if none were set.
  template <class Options>
  Options& of() {
    for (std::any& one : all_)
      if (auto* const found = std::any_cast<Options>(&one)) return *found;
    return *std::any_cast<Options>(&all_.emplace_back(Options{}));
  }
  // A copy of them.
  template <class Options>
  Options get() const {
    for (const std::any& one : all_)
      if (const auto* const found = std::any_cast<Options>(&one)) return *found;
    return {};
  }

 private:
  std::vector<std::any> all_;
};

}  // namespace stele
