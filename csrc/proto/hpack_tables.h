/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Made by scripts/make_hpack_tables.py from RFC 7541, Appendices A and B. */
#ifndef ZN_PROTO_HPACK_TABLES_H
#define ZN_PROTO_HPACK_TABLES_H

#include <stdint.h>

/* clang-format off */
#define HPACK_CODE_BITS_MAX 30u
#define HPACK_EOS 256u

/* Number of codes with 0, 1, 2 ... bits. */
static const uint16_t hpack_codes[] = {
    0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29,
    0, 4,
};

/* Symbols in the order of their codes. */
static const uint16_t hpack_symbols[] = {
    48, 49, 50, 97, 99, 101, 105, 111, 115, 116, 32, 37, 45, 46, 47, 51, 52, 53, 54, 55, 56, 57, 61,
    65, 95, 98, 100, 102, 103, 104, 108, 109, 110, 112, 114, 117, 58, 66, 67, 68, 69, 70, 71, 72,
    73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 89, 106, 107, 113, 118, 119, 120,
    121, 122, 38, 42, 44, 59, 88, 90, 33, 34, 40, 41, 63, 39, 43, 124, 35, 62, 0, 36, 64, 91, 93,
    126, 94, 125, 60, 96, 123, 92, 195, 208, 128, 130, 131, 162, 184, 194, 224, 226, 153, 161, 167,
    172, 176, 177, 179, 209, 216, 217, 227, 229, 230, 129, 132, 133, 134, 136, 146, 154, 156, 160,
    163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232, 233, 1, 135,
    137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174, 175,
    180, 182, 183, 188, 191, 197, 231, 239, 9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236,
    237, 199, 207, 234, 235, 192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243,
    255, 203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253,
    254, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29,
    30, 31, 127, 220, 249, 10, 13, 22, 256,
};

/* Index 1 is the first. */
static const struct {
    const char *name, *value;
    uint16_t name_bytes, value_bytes;
} hpack_fields[] = {
    {":authority", "", 10, 0},
    {":method", "GET", 7, 3},
    {":method", "POST", 7, 4},
    {":path", "/", 5, 1},
    {":path", "/index.html", 5, 11},
    {":scheme", "http", 7, 4},
    {":scheme", "https", 7, 5},
    {":status", "200", 7, 3},
    {":status", "204", 7, 3},
    {":status", "206", 7, 3},
    {":status", "304", 7, 3},
    {":status", "400", 7, 3},
    {":status", "404", 7, 3},
    {":status", "500", 7, 3},
    {"accept-charset", "", 14, 0},
    {"accept-encoding", "gzip, deflate", 15, 13},
    {"accept-language", "", 15, 0},
    {"accept-ranges", "", 13, 0},
    {"accept", "", 6, 0},
    {"access-control-allow-origin", "", 27, 0},
    {"age", "", 3, 0},
    {"allow", "", 5, 0},
    {"authorization", "", 13, 0},
    {"cache-control", "", 13, 0},
    {"content-disposition", "", 19, 0},
    {"content-encoding", "", 16, 0},
    {"content-language", "", 16, 0},
    {"content-length", "", 14, 0},
    {"content-location", "", 16, 0},
    {"content-range", "", 13, 0},
    {"content-type", "", 12, 0},
    {"cookie", "", 6, 0},
    {"date", "", 4, 0},
    {"etag", "", 4, 0},
    {"expect", "", 6, 0},
    {"expires", "", 7, 0},
    {"from", "", 4, 0},
    {"host", "", 4, 0},
    {"if-match", "", 8, 0},
    {"if-modified-since", "", 17, 0},
    {"if-none-match", "", 13, 0},
    {"if-range", "", 8, 0},
    {"if-unmodified-since", "", 19, 0},
    {"last-modified", "", 13, 0},
    {"link", "", 4, 0},
    {"location", "", 8, 0},
    {"max-forwards", "", 12, 0},
    {"proxy-authenticate", "", 18, 0},
    {"proxy-authorization", "", 19, 0},
    {"range", "", 5, 0},
    {"referer", "", 7, 0},
    {"refresh", "", 7, 0},
    {"retry-after", "", 11, 0},
    {"server", "", 6, 0},
    {"set-cookie", "", 10, 0},
    {"strict-transport-security", "", 25, 0},
    {"transfer-encoding", "", 17, 0},
    {"user-agent", "", 10, 0},
    {"vary", "", 4, 0},
    {"via", "", 3, 0},
    {"www-authenticate", "", 16, 0},
};
/* clang-format on */

#endif
