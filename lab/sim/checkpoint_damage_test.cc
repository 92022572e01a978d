// Damaged and crafted checkpoints: each is refused in a sentence, or goes on as some other run.
// None ends the program. STELE_FUZZ_SEED and STELE_FUZZ_INPUTS choose other inputs and more of
// them.
#include <base/checksum.h>
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <sim/checkpoint.h>
#include <sim/checkpoint_fixture.h>

#include <cstdlib>
#include <fstream>

namespace stele::sim {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

using bytes = std::vector<std::byte>;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<restored_run> subjects() {
  std::vector<restored_run> all;
  for (const machine_config& m : crash_machines())
    if (m.name == "overflowing, mutex, strong" || m.name == "few lines, htm, relaxed" ||
        m.name == "two ways, mutex, relaxed")
      all.push_back({m.name, m, make_tape({.transactions = 60, .lines = 32, .seed = 4})});
  for (const char* design : {"rlog", "ulog", "native"}) {
    machine_config m = small_caches("kiln", design, "htm");
    m.l1.replacement = m.l2.replacement = m.l3.replacement = "random";
    all.push_back({design, m, make_tape({.transactions = 60, .plain_stores = 3, .seed = 4})});
  }
  machine_config ddr = small_caches("kiln-sram-l3", "native", "htm");
  ddr.nonvolatile_memory = ddr.volatile_memory =
      machine_of("ddr5-4800-same-bank").nonvolatile_memory;
  ddr.nonvolatile_memory.write_queue_entries = ddr.nonvolatile_memory.read_queue_entries = 3;
  all.push_back({"ddr5", ddr, mixed_tape(1500)});
  for (const char* scheduler : {"rules", "strict"}) {
    machine_config m = small_caches("dp2", "native", "htm");
    m.nonvolatile_memory.scheduler = scheduler;
    all.push_back({scheduler, m, logged_tape(60)});
  }
  return all;
}

// Changes a few of the bytes, as somebody would who knows how numbers are stored.
bytes changed(bytes state, base::rng& random) {
  for (auto n = 1 + random.below(3); n != 0 && !state.empty(); --n) {
    const auto at = random.below(state.size());
    auto& byte = state[at];
    switch (random.below(6)) {
      case 0:
        byte ^= static_cast<std::byte>(1u << random.below(8));
        break;
      case 1:
        byte = static_cast<std::byte>(random.below(4));
        break;
      case 2:
        byte = static_cast<std::byte>(std::to_integer<unsigned>(byte) + 1);
        break;
      case 3:
        byte = static_cast<std::byte>(random.below(256));
        break;
      case 4:
        state.erase(state.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      default:
        std::swap(byte, state[random.below(state.size())]);
    }
  }
  return state;
}

// Goes on for a while, or says what is wrong.
std::string outcome_of(const restored_run& of, std::uint64_t seed, const bytes& state) {
  const auto s = of.make(seed);
  if (const std::string fault = fault_of(*s, state); !fault.empty()) return fault;
  try {
    (void)s->advance(3000, std::min(s->events.now(), latest) + 1'000'000'000);
    archive again;
    s->visit_state(again);
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

TEST(checkpoint_damage, of_a_crafted_state_ends_in_a_sentence_or_in_another_run) {
  const std::uint64_t seed = from_environment("STELE_FUZZ_SEED", 1),
                      inputs = from_environment("STELE_FUZZ_INPUTS", 600);
  base::rng random(seed);
  const auto all = subjects();
  std::size_t refused = 0;
  for (std::uint64_t input = 0; input < inputs;) {
    const restored_run& of = all[random.below(all.size())];
    auto s = of.make(seed);
    for (auto n = random.below(1500); n != 0 && s->advance(1);) --n;
    const bytes state = bytes_of(*s);
    ASSERT_EQ(outcome_of(of, seed, state), "");
    for (unsigned i = 0; i < 30; ++i, ++input) {
      SCOPED_TRACE("input " + std::to_string(input) + ", " + of.name);
      refused += !outcome_of(of, seed, changed(state, random)).empty();
    }
  }
  EXPECT_GT(refused, inputs / 4);
}

class checkpoint_damage_file : public testing::Test {
 protected:
  void SetUp() override {
    const restored_run of = subjects().front();
    auto s = of.make(1);
    (void)s->advance(500);
    subject_.machine = toml_of(of.machine), subject_.tape = "/some/tape";
    const bytes state = bytes_of(*s);
    ASSERT_TRUE(write_checkpoint(file_, subject_, state));
    good_ = content();
    const auto read = read_checkpoint(file_);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->subject.machine, subject_.machine);
    EXPECT_EQ(read->subject.tape, subject_.tape);
    EXPECT_TRUE(std::ranges::equal(read->state, state));
  }
  bytes content() const {
    std::ifstream in(file_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    bytes all(text.size());
    std::memcpy(all.data(), text.data(), text.size());
    return all;
  }
  // What reading these bytes says.
  std::string said_of(const bytes& all, bool with_right_checksum = false) {
    bytes copy = all;
    if (with_right_checksum) {
      base::checksum sum(0x4B43'454C'4554'53);
      sum.add(copy.data(), copy.size() - 8);
      const std::uint64_t value = sum.value();
      std::memcpy(copy.data() + copy.size() - 8, &value, 8);
    }
    std::ofstream(file_, std::ios::binary)
        .write(reinterpret_cast<const char*>(copy.data()),
               static_cast<std::streamsize>(copy.size()));
    const auto read = read_checkpoint(file_);
    return read ? "" : read.error().message;
  }

  const base::scratch_directory dir_;
  const std::string file_ = dir_.file("checkpoint");
  checkpoint_subject subject_;
  bytes good_;
};

TEST_F(checkpoint_damage_file, that_is_cut_off_or_extended_is_refused) {
  for (std::size_t size = 0; size < good_.size(); size += size < 64 ? 1 : 97)
    EXPECT_THAT(said_of(bytes(good_.begin(), good_.begin() + static_cast<std::ptrdiff_t>(size))),
                AllOf(HasSubstr(file_), HasSubstr("take an earlier one")));
  bytes longer = good_;
  longer.resize(longer.size() + 8);
  EXPECT_THAT(said_of(longer), HasSubstr("was cut off or extended"));
  EXPECT_EQ(said_of(good_), "");
}

TEST_F(checkpoint_damage_file, with_one_other_byte_is_refused) {
  for (std::size_t at = 0; at < good_.size(); at += at < 64 ? 1 : 31) {
    bytes other = good_;
    other[at] ^= std::byte{0x10};
    EXPECT_THAT(said_of(other), HasSubstr(file_)) << at;
  }
}

TEST_F(checkpoint_damage_file, with_crafted_sizes_or_texts_is_refused) {
  for (const std::size_t at : {16, 24})
    for (const std::uint64_t size :
         {~std::uint64_t{0}, ~std::uint64_t{0} - 7, std::uint64_t{1} << 63,
          std::uint64_t{good_.size()}, std::uint64_t{0}}) {
      bytes other = good_;
      std::memcpy(other.data() + at, &size, 8);
      EXPECT_NE(said_of(other, true), "") << at << ", " << size;
    }
  base::rng random(1);
  for (unsigned i = 0; i < 300; ++i) {
    bytes other = good_;
    for (unsigned n = 0; n < 3; ++n) other[32 + random.below(48)] = std::byte(random.below(256));
    (void)said_of(other, true);
  }
}

TEST_F(checkpoint_damage_file, of_another_version_or_layout_is_refused) {
  for (const std::size_t at : {8, 12}) {
    bytes other = good_;
    other[at] ^= std::byte{1};
    EXPECT_THAT(said_of(other, true),
                AllOf(HasSubstr("goes on from"), HasSubstr("with the program that wrote it")));
  }
}

TEST_F(checkpoint_damage_file, that_is_none_is_refused) {
  EXPECT_THAT(said_of(bytes(4096)), HasSubstr("does not begin with STELECKP"));
  for (const std::string& path :
       {dir_.file("none"), dir_.path().string(), std::string("/dev/null")}) {
    const auto read = read_checkpoint(path);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, AllOf(HasSubstr(path), HasSubstr("checkpoint")));
  }
}

}  // namespace
}  // namespace stele::sim
