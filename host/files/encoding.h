// What the first bytes of a file say it is, and UTF-16 as UTF-8.
#ifndef FATHOM_HOST_FILES_ENCODING_H
#define FATHOM_HOST_FILES_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/str.h"

// Refuses what is no text: archives that are not unpacked here, by name, and other binary data.
// `start` is the file's first piece.
bool encoding_check(struct str start, struct str name, struct error *e) MUST_USE;

enum encoding { ENCODING_BYTES, ENCODING_UTF16_LE, ENCODING_UTF16_BE };

enum encoding encoding_of(struct str start); // by the mark at its start

// Decodes UTF-16 piece by piece. A half of a character that a piece ends with waits for the next.
struct utf16 {
    bool big_endian, half;
    unsigned char first; // the byte that waits
    uint32_t high;       // the surrogate that waits, 0: none
};

enum { UTF16_GROWTH = 3 }; // bytes of UTF-8 for each byte, at most

// Writes to `out`, which has UTF16_GROWTH times the room of `in` and UTF16_GROWTH more.
struct str utf16_decode(char *out, struct utf16 *u, struct str in);

#endif
