// Viper, a hybrid key-value store ("Viper: An Efficient Hybrid PMem-DRAM Key-Value Store", VLDB
// 2021), on the workload `store`, from a checkout of hpides/viper. A program of its own, because an
// exception in one of its threads ends the process.
//
// Settings: records of fixed size, its faster kind; keys are numbers, which its index holds itself;
// one client a thread, kept from run to run. A put writes a new record and frees the old one's
// place, so that a crash leaves one of them; update in place, which is not atomic, is not used. Its
// reclamation is off, as by default: space of overwritten records comes back only in part, and the
// pool grows while it runs. Each put and each removal is durable when it returns and isolated, but
// there are no transactions of several. It fences twice in a put, by clwb. Mapped without MAP_SYNC,
// which a file system without DAX refuses.
#include <bench/contender_process.h>
#include <bench/rivals/checkouts.h>
#include <bench/rivals/store_rival.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#undef MAP_SYNC
#define MAP_SYNC 0
#include <viper/viper.hpp>

namespace stele::bench {
namespace {

using workloads::operation;

constexpr std::size_t chunk_bytes = std::size_t{128} << 20;  // the pool grows by these

template <std::size_t N>
class viper_engine final : public store_engine {
  struct record {
    std::array<char, N> bytes;
  };
  using store = viper::Viper<std::uint64_t, record>;
  using client = typename store::Client;

 public:
  static constexpr const char* name = "viper";

  static result<std::unique_ptr<viper_engine>> open(const store_settings& s) try {
    const std::string folder = std::getenv("STELE_VIPER_DIR");
    viper::ViperConfig settings;
    settings.fs_alignment = chunk_bytes;
    const std::size_t chunks = s.content_bytes() * 5 / 4 / chunk_bytes + 2;
    return std::unique_ptr<viper_engine>(
        new viper_engine(store::create(folder, chunks * chunk_bytes, settings)));
  } catch (const std::exception& failure) {
    return engine_failed(name, "opening", failure.what());
  }

  result<> apply(std::span<const operation> ops) override {
    client& mine = this_thread();
    for (const operation& op : ops) {
      if (op.what == operation::kind::put) {
        static thread_local std::string value;
        record r;
        std::memcpy(r.bytes.data(), workloads::store::value(op.b, N, value).data(), N);
        mine.put(key_of(op.a), r);
      } else {
        mine.remove(key_of(op.a));
      }
    }
    return {};
  }
  result<bool> get(std::uint64_t number, std::string& into) override {
    record r;
    const bool there = this_thread().get(key_of(number), &r);
    if (there) into.assign(r.bytes.data(), N);
    return there;
  }
  std::optional<std::uint64_t> space_bytes() override {
    return this_thread().get_total_used_pmem();
  }

 private:
  explicit viper_engine(std::unique_ptr<store> s) : store_(std::move(s)) {}

  static std::uint64_t key_of(std::uint64_t number) {
    const workloads::store::key bytes(number);
    std::uint64_t key = 0;
    std::memcpy(&key, std::string_view(bytes).data(), sizeof key);
    return key;
  }

  // A thread's client; the end of the thread gives it back for the next thread.
  struct loan {
    viper_engine* from = nullptr;
    std::unique_ptr<client> lent;
    ~loan() {
      if (from == nullptr) return;
      const std::lock_guard hold(from->mutex_);
      from->idle_.push_back(std::move(lent));
    }
  };
  client& this_thread() {
    static thread_local loan mine;
    if (!mine.lent) {
      const std::lock_guard hold(mutex_);
      if (idle_.empty()) {
        mine.lent.reset(new client(store_->get_client()));
      } else {
        mine.lent = std::move(idle_.back());
        idle_.pop_back();
      }
      mine.from = this;
    }
    return *mine.lent;
  }

  const std::unique_ptr<store> store_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<client>> idle_;
};

template <std::size_t I = 0>
contender_result make(const task& t) {
  constexpr std::size_t size = viper_value_sizes[I];
  if constexpr (I + 1 < viper_value_sizes.size())
    if (t.parameters.value_size != size) return make<I + 1>(t);
  return make_store_rival<viper_engine<size>>(t);
}

}  // namespace
}  // namespace stele::bench

int main() {
  using namespace stele::bench;
  if (std::getenv("STELE_VIPER_DIR") == nullptr) return 1;  // started by stele compare
  const int status = serve_contender(contender_socket, [](const task& t) { return make<>(t); });
  ::_exit(status);  // threads and clients of the store are still there
}
