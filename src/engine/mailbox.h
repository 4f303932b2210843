// What callers leave for the engine's thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/sequence.h"

namespace briar {

// Thread-safe. Handles that outlive the engine share it.
class Mailbox {
 public:
  struct Mail {
    std::vector<std::unique_ptr<Sequence>> submitted;
    std::vector<uint64_t> cancelled;
    std::vector<uint64_t> dropped_handles;
    bool stop = false;
  };

  void submit(std::unique_ptr<Sequence> sequence) {
    leave([&] { mail_.submitted.push_back(std::move(sequence)); });
  }
  void cancel(uint64_t id) {
    leave([&] { mail_.cancelled.push_back(id); });
  }
  void drop_handle(uint64_t name) {
    leave([&] { mail_.dropped_handles.push_back(name); });
  }
  void stop() {
    leave([&] { mail_.stop = true; });
  }

  // Everything since the last call. may_wait: until there is something.
  Mail take(bool may_wait) {
    std::unique_lock lock(mutex_);
    if (may_wait) arrived_.wait(lock, [&] { return has_mail_; });
    has_mail_ = mail_.stop;  // which stays
    Mail mail = std::move(mail_);
    mail_ = {.submitted = {}, .cancelled = {}, .dropped_handles = {}, .stop = mail.stop};
    return mail;
  }

 private:
  template <class F>
  void leave(const F& put) {
    {
      std::lock_guard lock(mutex_);
      put();
      has_mail_ = true;
    }
    arrived_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  Mail mail_;
  bool has_mail_ = false;
};

}  // namespace briar
