// A pool with correct checksums that no program writes: a pool that a program wrote, with some
// words changed.
#pragma once

#include <cli/pool_content.h>
#include <gtest/gtest.h>
#include <tests/format/specimens.h>
#include <tests/fuzz/repair.h>
#include <tests/fuzz/target.h>
#include <tx/inspect.h>
#include <tx/open.h>

#include <fstream>

namespace stele::testing {

using fuzz::image;

class hostile : public ::testing::Test {
 protected:
  image start_with(const std::string& name) {
    for (const specimen& s : specimens())
      if (s.name == name) bytes_ = make(s, fuzz::scratch());
    return image(bytes_);
  }
  // Likewise of the pool at path_, which this test has made.
  image start_with_own() {
    std::ifstream in(path_, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(all));
    bytes_.assign(bytes.begin(), bytes.end());
    return image(bytes_);
  }
  void store() {
    fuzz::repair_pool(image(bytes_));
    fuzz::write_file(path_, bytes_);
  }
  // The error of the check, of the content's check, or of opening.
  errc refusal() {
    store();
    if (const auto checked = detail::check_pool(path_); !checked) return checked.error().code;
    if (const auto text = content_text(path_); !text) return text.error().code;
    const auto opened =
        detail::open_path(path_, {.engine = {.media = "process", .background = false}});
    return opened ? errc{} : opened.error().code;
  }

  template <class Result>
  static errc code_of(const Result& r) {
    return r ? errc{} : r.error().code;
  }

  fuzz::bytes bytes_;
  const std::string path_ = fuzz::scratch() + "/hostile";
};

}  // namespace stele::testing
