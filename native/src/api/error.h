/* The detail of a thread's last failed call. */
#ifndef TACHO_API_ERROR_H
#define TACHO_API_ERROR_H

#include <cstdint>

namespace tacho {

/* Keeps the words for tacho_last_error on this thread and returns `status`. */
__attribute__((format(printf, 2, 3))) int32_t fail(int32_t status, const char* format, ...);

/* The kept words, "" if no call of this thread has failed. */
const char* last_error();

/* Copies text into buffer[capacity_bytes], ended by 0, cut if too long. TACHO_EINVAL without room for the 0. */
int32_t copy_text(const char* text, char* buffer, int64_t capacity_bytes);

}  // namespace tacho

#endif
