// See feature_mix.h.
#include <base/rng.h>
#include <explore/feature_mix.h>

#include <algorithm>
#include <array>

namespace stele::explore {

namespace {

constexpr std::array<std::string_view, 10> works = {"check", "backup",       "grow",     "sync",
                                                    "read",  "update",       "snapshot", "hold",
                                                    "other", "other-at-once"};

bool needs_memory(std::string_view work) {
  return work == "grow" || work == "other" || work == "other-at-once";
}

}  // namespace

feature_mix draw_mix(std::uint64_t seed, unsigned number) {
  base::rng random(base::mix(seed) ^ number);
  const auto one_in = [&](std::uint64_t n) { return random.below(n) == 0; };
  feature_mix m;
  m.what = static_cast<feature_mix::load>(random.below(7));
  m.how = static_cast<feature_mix::commits>(random.below(6));
  m.threads = 1 + static_cast<unsigned>(random.below(3));
  m.logs = 2 + static_cast<unsigned>(random.below(2));
  m.sums = one_in(2);
  m.shared_log = one_in(2);
  m.on_file = one_in(8);
  m.attached = one_in(3) && !m.on_file;
  m.background = one_in(3);
  m.each_load_a_point = one_in(4);
  m.works_apart = one_in(2);
  for (std::uint64_t left = random.below(4); left != 0; --left)
    if (const auto work = works[random.below(works.size())]; !m.on_file || !needs_memory(work))
      m.beside.push_back(work);
  m.one_writer = one_in(3);
  // A snapshot that is held is taken first.
  std::ranges::stable_sort(m.beside, {}, [](std::string_view work) { return work != "hold"; });
  return m;
}

std::vector<std::pair<std::string_view, std::string>> feature_mix::features() const {
  const auto of = [](auto value) { return std::to_string(static_cast<unsigned>(value)); };
  std::vector<std::pair<std::string_view, std::string>> all = {{"load", of(what)},
                                                               {"commits", of(how)},
                                                               {"threads", of(threads)},
                                                               {"logs", of(logs)},
                                                               {"sums", of(sums)},
                                                               {"shared log", of(shared_log)},
                                                               {"on a file", of(on_file)},
                                                               {"attached", of(attached)},
                                                               {"background", of(background)},
                                                               {"one writer", of(one_writer)},
                                                               {"points", of(each_load_a_point)},
                                                               {"apart", of(works_apart)}};
  for (const std::string_view work : beside) all.emplace_back("beside", std::string(work));
  return all;
}

}  // namespace stele::explore
