// A Redis server in a folder of its own, for measurements. It ends with the object, and its folder
// goes. Clients reach it by a socket of the folder.
#pragma once

#include <stele/error.h>
#include <sys/types.h>

#include <memory>
#include <span>
#include <string>

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

  std::string socket() const { return folder_ + "/socket"; }
  // Of its files, but the log.
  std::uint64_t file_bytes() const;

 private:
  server(std::string folder, pid_t process) : folder_(std::move(folder)), process_(process) {}
  [[nodiscard]] result<> wait_until_ready();

  const std::string folder_;
  pid_t process_;  // 0: it has ended
};

}  // namespace stele::bench::redis
