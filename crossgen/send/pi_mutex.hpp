// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace crossgen {

// A mutex with priority inheritance, for std::lock_guard. The launcher has the highest priority, and must not wait for
// a worker that holds the mutex without getting the CPU.
class PiMutex {
public:
  PiMutex() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  PiMutex(const PiMutex &) = delete;
  PiMutex &operator=(const PiMutex &) = delete;
  ~PiMutex() { pthread_mutex_destroy(&mutex_); }

  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

private:
  pthread_mutex_t mutex_;
};

} // namespace crossgen
