/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/timestamp.h"

#define NS_PER_DAY (INT64_C(86400) * ZN_NS_PER_S)
#define YEAR_MIN 1969 /* with an offset its last hours can lie in 1970 */
#define YEAR_MAX 2262
#define DAYS_TO_1970 719468 /* from 0000-03-01, where the calendar below begins */
#define DAYS_PER_ERA 146097 /* 400 years */
#define EXPONENT_MAX INT64_C(1000000000000)
#define SHORT_DIGITS 19 /* that 64 bits hold */

/* Digits after the point down to the nanosecond. */
static const unsigned decimals_of[] = {
    [ZN_TIME_S] = 9, [ZN_TIME_MS] = 6, [ZN_TIME_US] = 3, [ZN_TIME_NS] = 0};

static uint8_t peek(const zn_cursor *c)
{
    return zn_cursor_left(c) != 0 ? *c->p : 0;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool accept(zn_cursor *c, char wanted)
{
    if (peek(c) != (uint8_t)wanted)
        return false;
    zn_cursor_skip(c, 1);
    return true;
}

/* Appends a digit to *value; false when the result is more than INT64_MAX. */
static bool append(int64_t *value, uint8_t digit)
{
    return !__builtin_mul_overflow(*value, 10, value) &&
           !__builtin_add_overflow(*value, digit - '0', value);
}

/* Reads the digits after a point and appends nine of them to *value, zeros for missing ones; false
 * when there is no digit. */
static bool take_fraction(zn_cursor *c, int64_t *value)
{
    unsigned decimals = 9;
    if (!is_digit(peek(c)))
        return false;
    while (is_digit(peek(c))) {
        uint8_t digit = zn_cursor_u8(c);
        if (decimals != 0 && !append(value, digit))
            return false;
        decimals -= decimals != 0;
    }
    for (; decimals != 0; decimals--)
        if (!append(value, '0'))
            return false;
    return true;
}

/* Digits before and after the point of a number, and its power of ten. */
typedef struct decimal {
    zn_span whole, fraction;
    int64_t exponent;
} decimal;

static zn_span take_digits(zn_cursor *c)
{
    zn_span digits = {c->p, 0};
    for (; is_digit(peek(c)); digits.n++)
        zn_cursor_skip(c, 1);
    return digits;
}

/* Reads [+-]digits after an e. A larger exponent than EXPONENT_MAX becomes EXPONENT_MAX, because
 * numbers have far fewer digits. */
static bool take_exponent(zn_cursor *c, int64_t *exponent)
{
    bool negative = accept(c, '-');
    if (!negative)
        (void)accept(c, '+');
    if (!is_digit(peek(c)))
        return false;
    while (is_digit(peek(c))) {
        *exponent = *exponent * 10 + (zn_cursor_u8(c) - '0');
        if (*exponent > EXPONENT_MAX)
            *exponent = EXPONENT_MAX;
    }
    *exponent = negative ? -*exponent : *exponent;
    return true;
}

/* Reads digits[.digits][e[+-]digits]; `point` is the character between the digits. */
static bool take_decimal(zn_cursor *c, char point, decimal *out)
{
    *out = (decimal){.whole = take_digits(c)};
    if (out->whole.n == 0)
        return false;
    if (accept(c, point)) {
        out->fraction = take_digits(c);
        if (out->fraction.n == 0)
            return false;
    }
    return (!accept(c, 'e') && !accept(c, 'E')) || take_exponent(c, &out->exponent);
}

static bool parse_number(zn_cursor *c, unsigned decimals, int64_t *t_ns)
{
    decimal number;
    int64_t digits, left;
    *t_ns = 0;
    if (!take_decimal(c, '.', &number))
        return false;
    digits = (int64_t)(number.whole.n + number.fraction.n);
    left = (int64_t)number.whole.n + number.exponent + decimals; /* digits down to the nanosecond */
    for (int64_t i = 0; i < left; i++) {
        uint8_t digit = '0';
        if (i >= digits && *t_ns == 0)
            break;
        if (i < (int64_t)number.whole.n)
            digit = number.whole.p[i];
        else if (i < digits)
            digit = number.fraction.p[i - (int64_t)number.whole.n];
        if (!append(t_ns, digit))
            return false;
    }
    return true;
}

/* Returns true, with *value, if eight bytes are digits. Neighbours are joined to pairs, pairs to
 * fours, and fours to the number. */
static inline bool eight_digits(const uint8_t bytes[8], uint64_t *value)
{
    static const uint64_t zeros = UINT64_C(0x3030303030303030);
    uint64_t word = zn_le_get(bytes, 8);
    uint64_t above_nine = word + UINT64_C(0x4646464646464646), digits = word - zeros;
    if (((above_nine | digits) & UINT64_C(0x8080808080808080)) != 0)
        return false;
    digits = (digits * 10 + (digits >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    digits = (digits * 100 + (digits >> 16)) & UINT64_C(0x0000ffff0000ffff);
    *value = (digits * 10000 + (digits >> 32)) & UINT32_MAX;
    return true;
}

/*
 * Reads a number of at most 19 digits without an exponent, as nearly all are: 64 bits hold it.
 * Returns false for any other text, which parse_number may read.
 */
static bool parse_short(zn_span text, unsigned decimals, int64_t *t_ns)
{
    static const int64_t powers[] = {1,      10,      100,      1000,      10000,
                                     100000, 1000000, 10000000, 100000000, 1000000000};
    uint64_t value = 0;
    size_t point = 0, at;
    if (text.n > SHORT_DIGITS + 1)
        return false;
    if (text.n >= 8 && eight_digits(text.p, &value))
        point = 8;
    for (; point < text.n && is_digit(text.p[point]); point++)
        value = value * 10 + (uint64_t)(text.p[point] - '0');
    if (point == 0 || point > SHORT_DIGITS)
        return false;
    at = point + (point != text.n);
    if (at != point && (text.p[point] != '.' || at == text.n))
        return false;
    for (; at < text.n && is_digit(text.p[at]); at++)
        if (decimals != 0) {
            value = value * 10 + (uint64_t)(text.p[at] - '0');
            decimals--;
        }
    return at == text.n && !__builtin_mul_overflow(value, powers[decimals], t_ns);
}

/* Reads exactly n digits, a number from low to high, and returns it; -1 for any other text. */
static int take_field(zn_cursor *c, unsigned n, int low, int high)
{
    int value = 0;
    for (; n != 0; n--) {
        if (!is_digit(peek(c)))
            return -1;
        value = value * 10 + (zn_cursor_u8(c) - '0');
    }
    return value >= low && value <= high ? value : -1;
}

static int days_in_month(int year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* Days from 1970-01-01, in years that begin in March (Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms"). */
static int64_t days_from_date(int year, int month, int day)
{
    int shifted = month <= 2 ? year - 1 : year;
    int era = shifted / 400, of_era = shifted % 400;
    int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    return (int64_t)era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

static bool take_date(zn_cursor *c, int64_t *days)
{
    int year = take_field(c, 4, YEAR_MIN, YEAR_MAX), month, day;
    if (year < 0 || !accept(c, '-'))
        return false;
    month = take_field(c, 2, 1, 12);
    if (month < 0 || !accept(c, '-'))
        return false;
    day = take_field(c, 2, 1, days_in_month(year, month));
    if (day < 0)
        return false;
    *days = days_from_date(year, month, day);
    return true;
}

/* Reads HH:MM[:SS[.fraction]] as ns since midnight. */
static bool take_clock(zn_cursor *c, int64_t *ns)
{
    int hour = take_field(c, 2, 0, 23), minute, second = 0;
    int64_t fraction = 0;
    if (hour < 0 || !accept(c, ':'))
        return false;
    minute = take_field(c, 2, 0, 59);
    if (minute < 0)
        return false;
    if (accept(c, ':')) {
        second = take_field(c, 2, 0, 59);
        if (second < 0)
            return false;
        if ((accept(c, '.') || accept(c, ',')) && !take_fraction(c, &fraction))
            return false;
    }
    *ns = (int64_t)(hour * 3600 + minute * 60 + second) * ZN_NS_PER_S + fraction;
    return true;
}

/* Reads "UTC". */
static bool take_utc(zn_cursor *c)
{
    return accept(c, 'U') && accept(c, 'T') && accept(c, 'C');
}

/* Reads the offset, if there is one (*found), as the ns to add for UTC. */
static bool take_offset(zn_cursor *c, int64_t *ns, bool *found)
{
    int sign, hour, minute = 0;
    *ns = 0;
    *found = zn_cursor_left(c) != 0;
    if (!*found)
        return true;
    (void)accept(c, ' ');
    if (accept(c, 'Z') || accept(c, 'z'))
        return true;
    if (peek(c) == 'U')
        return take_utc(c);
    sign = accept(c, '-') ? 1 : accept(c, '+') ? -1 : 0;
    hour = take_field(c, 2, 0, 23);
    if (sign == 0 || hour < 0)
        return false;
    if (accept(c, ':') || is_digit(peek(c)))
        minute = take_field(c, 2, 0, 59);
    *ns = sign * (int64_t)(hour * 60 + minute) * 60 * ZN_NS_PER_S;
    return minute >= 0;
}

static bool parse_iso(zn_cursor *c, zn_timestamp *out)
{
    int64_t days, of_day = 0, offset = 0, t_ns;
    out->has_offset = false;
    if (!take_date(c, &days))
        return false;
    if (accept(c, 'T') || accept(c, 't') || accept(c, ' ')) {
        if (!take_clock(c, &of_day) || !take_offset(c, &offset, &out->has_offset))
            return false;
    }
    if (__builtin_mul_overflow(days, NS_PER_DAY, &t_ns) ||
        __builtin_add_overflow(t_ns, of_day + offset, &t_ns))
        return false;
    out->t_ns = t_ns;
    return t_ns >= 0;
}

bool zn_timestamp_parse(zn_span text, zn_time_unit unit, zn_timestamp *out)
{
    zn_cursor c = zn_cursor_over_span(text, true);
    bool ok;
    if (unit == ZN_TIME_ISO) {
        ok = parse_iso(&c, out);
    } else {
        out->has_offset = true;
        if (ZN_LIKELY(parse_short(text, decimals_of[unit], &out->t_ns)))
            return true;
        ok = parse_number(&c, decimals_of[unit], &out->t_ns);
    }
    return ok && zn_cursor_left(&c) == 0;
}

/* Returns true if the whole text is a number with this character before its decimals. */
static bool is_decimal(zn_span text, char point)
{
    zn_cursor c = zn_cursor_over_span(text, true);
    decimal number;
    return take_decimal(&c, point, &number) && zn_cursor_left(&c) == 0;
}

bool zn_timestamp_is_number(zn_span text)
{
    return is_decimal(text, '.');
}

const char *zn_timestamp_problem(zn_span text, zn_time_unit unit)
{
    static const char *const expected[] = {
        [ZN_TIME_S] = "not a time in s since 1970, such as 1715677200.5",
        [ZN_TIME_MS] = "not a time in ms since 1970, such as 1715677200500",
        [ZN_TIME_US] = "not a time in us since 1970, such as 1715677200500000",
        [ZN_TIME_NS] = "not a time in ns since 1970, such as 1715677200500000000",
        [ZN_TIME_ISO] = "not a time from 1970 to 2262 such as 2024-05-14T09:00:00Z"};
    if (!is_decimal(text, '.') && is_decimal(text, ','))
        return "a time with a decimal comma; write a point, such as 1715677200.5";
    return expected[unit];
}

/* Appends `value` in exactly n digits. */
static void put_digits(zn_text *out, int64_t value, unsigned n)
{
    char *at = zn_text_reserve(out, n);
    if (at == NULL)
        return;
    out->n += n;
    for (; n != 0; n--, value /= 10)
        at[n - 1] = (char)('0' + value % 10);
}

static void put_date(zn_text *out, int64_t days)
{
    int64_t shifted = days + DAYS_TO_1970;
    int64_t era = shifted / DAYS_PER_ERA, day = shifted % DAYS_PER_ERA;
    int64_t of_era = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t day_of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    int64_t real_month = month < 10 ? month + 3 : month - 9;
    put_digits(out, era * 400 + of_era + (real_month <= 2), 4);
    zn_text_char(out, '-');
    put_digits(out, real_month, 2);
    zn_text_char(out, '-');
    put_digits(out, day_of_year - (153 * month + 2) / 5 + 1, 2);
}

static void put_iso(zn_text *out, int64_t t_ns)
{
    int64_t second = t_ns / ZN_NS_PER_S, fraction = t_ns % ZN_NS_PER_S;
    put_date(out, t_ns / NS_PER_DAY);
    zn_text_char(out, 'T');
    put_digits(out, second / 3600 % 24, 2);
    zn_text_char(out, ':');
    put_digits(out, second / 60 % 60, 2);
    zn_text_char(out, ':');
    put_digits(out, second % 60, 2);
    if (fraction != 0) {
        unsigned decimals = 9;
        for (; fraction % 1000 == 0; fraction /= 1000)
            decimals -= 3;
        zn_text_char(out, '.');
        put_digits(out, fraction, decimals);
    }
    zn_text_char(out, 'Z');
}

void zn_timestamp_put(zn_text *out, int64_t t_ns, zn_time_unit unit)
{
    unsigned decimals;
    if (unit == ZN_TIME_ISO) {
        put_iso(out, t_ns);
        return;
    }
    decimals = decimals_of[unit];
    for (; decimals != 0 && t_ns % 10 == 0; t_ns /= 10)
        decimals--;
    if (decimals == 0)
        zn_text_i64(out, t_ns);
    else
        zn_text_fixed(out, t_ns, decimals);
}
