// A Redis server in a folder of its own, for measurements. It ends with the object, and its folder
// goes. Clients reach it by a socket of the folder.
#pragma once

#include <stele/error.h>
#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench::redis {

class server {
 public:
  // `folder` is made; `settings` follow redis-server's own: "--appendonly", "yes", ... Errors: io,
  // with the end of the server's log; unsupported, if there is no redis-server.
  [[nodiscard]] static result<std::unique_ptr<server>> start(const std::string& folder,
                                                             std::span<const std::string> settings);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  // By SIGKILL. Its files stay for start_again().
  void kill();
  // After kill(), with the same settings. Returns when it has answered; errors as start().
  [[nodiscard]] result<> start_again();

  std::string socket() const { return folder_ + "/socket"; }
  // Of its files, but the log.
  std::uint64_t file_bytes() const;

 private:
  server(std::string folder, std::vector<std::string> arguments)
      : folder_(std::move(folder)), arguments_(std::move(arguments)) {}
  [[nodiscard]] result<> wait_until_ready();

  const std::string folder_;
  std::vector<std::string> arguments_;
  pid_t process_ = 0;  // 0: it has ended
};

// Settings of a server with the module, whose pool is in the server's folder.
std::vector<std::string> module_settings(std::string_view media, std::size_t pool_bytes,
                                         std::string_view mechanism);
// A port of this machine that nobody listens on; for the setting "--port". Errors: io.
[[nodiscard]] result<std::string> free_port();

}  // namespace stele::bench::redis
