// The length of a log is the pool's: a run of stored words has as many as a log has payload words,
// less what heads and checksums may take. All of them follow from an operation's seed.
#include <explore/ring_records.h>
#include <format/log_line.h>
#include <tx/runtime.h>

#include <algorithm>
#include <array>

namespace stele::explore {

namespace {

using workloads::operation;
using kind = operation::kind;

constexpr std::size_t root_words = 640;

struct ring_root {
  field<std::uint64_t> words[root_words];
};

// Payload words that the log has and a run of so many words may lack: from a line more than the log
// to a line less, whatever heads and checksums a mechanism writes beside them.
constexpr std::uint64_t most_beside = 48, window = most_beside + 2 * format::payload_words;

template <class Words>
void change(Words& words, const operation& op, std::uint64_t payload) {
  if (op.what == kind::swap) words[op.a % root_words] = op.b;
  if (op.what != kind::put && op.what != kind::append) return;
  const std::uint64_t whole = op.what == kind::put ? payload : payload / 2;
  const std::uint64_t count =
      std::min<std::uint64_t>(whole + format::payload_words - op.a % window, root_words);
  for (std::uint64_t i = 0; i < count; ++i) words[i] = base::mix(op.b + i);
}

template <class Words>
std::uint64_t digest_of(const Words& words) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < root_words; ++i) sum += words[i] * (2 * i + 1);
  return sum;
}

class ring_model final : public workloads::model {
 public:
  explicit ring_model(std::uint64_t payload) : payload_(payload) {}
  void apply(const operation& op) override { change(words_, op, payload_); }
  std::uint64_t digest() const override { return digest_of(words_); }

 private:
  const std::uint64_t payload_;
  std::array<std::uint64_t, root_words> words_{};
};

class ring_records final : public workloads::workload_on<ring_root> {
 public:
  std::string_view name() const override { return "rings"; }
  result<> set_up() override { return pool_->sync(); }
  void attach(detail::pool_handle handle) override {
    workload_on::attach(std::move(handle));
    const std::uint64_t bytes = core().state().file.header().log_size - format::log_control_size;
    payload_ = bytes / detail::line_size * format::payload_words;
  }

  operation draw(base::rng& random) const override {
    constexpr std::array kinds = {kind::put, kind::put, kind::put, kind::append, kind::swap};
    return {kinds[random.below(kinds.size())], random(), random() | 1};
  }

  result<> apply(std::span<const operation> operations) override {
    return pool_->update(
        [&](ring_root& r) {
          for (const operation& op : operations) change(r.words, op, payload_);
        },
        commit_durability());
  }

  result<std::uint64_t> digest() override {
    return pool_->read([](const ring_root& r) { return digest_of(r.words); });
  }
  void visit_blocks(const workloads::block_visit&) override {}

  std::unique_ptr<workloads::model> make_model() const override {
    return std::make_unique<ring_model>(payload_);
  }

 private:
  std::uint64_t payload_ = 0;
};

}  // namespace

std::unique_ptr<workloads::workload> make_ring_records() {
  return std::make_unique<ring_records>();
}

}  // namespace stele::explore
