/* SPDX-License-Identifier: MIT
 *
 * What: decodes UTF-8 (RFC 3629). Place: the log's JSON, and programs that write their own. Calls
 * nothing.
 *
 * Shape: each call decodes one character. It refuses the same bytes as the RFC: those that begin no
 * character, incomplete characters, overlong forms, surrogates, and numbers above U+10FFFF.
 *
 * Example:
 *     for (size_t length; left > 0 && (length = sxe_utf8_decode(&character, in, left)) > 0;) {
 *         in += length;
 *         left -= length;
 *     }
 */
#ifndef SXE_UTF8_H
#define SXE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decode the character at in, where left bytes, at least one, can be read. Returns its length; 0:
 * it is no UTF-8. In a text that ends with a NUL, left may always be 4: decoding stops there. */
static inline size_t
sxe_utf8_decode(uint32_t *character, const unsigned char *in, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = in[0] < 0x80 ? 1 : in[0] >= 0xf0 ? 4 : in[0] >= 0xe0 ? 3 : 2;

    *character = in[0];
    if (length == 1)
        return 1;
    if (in[0] < 0xc0 || in[0] > 0xf7 || length > left)
        return 0;
    *character = in[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((in[i] & 0xc0) != 0x80)
            return 0;
        *character = *character << 6 | (in[i] & 0x3fu);
    }
    if (*character < least[length] || *character > 0x10ffff)
        return 0;
    return *character >= 0xd800 && *character <= 0xdfff ? 0 : length;
}

#endif
