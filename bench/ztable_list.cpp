// SPDX-FileCopyrightText: The zanon_net authors
// SPDX-License-Identifier: Apache-2.0
//
// Algorithm 1 of the 2022 paper as one writes it with the standard library, for test_ztable.py:
// unordered_map for H and V_a, list for LRU_a. Attributes and users are plain 64-bit numbers.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <list>
#include <unordered_map>
#include <utility>

namespace
{

struct attribute {
    std::list<std::pair<std::int64_t, std::uint64_t>> users; // newest first
    std::unordered_map<std::uint64_t, decltype(users)::iterator> known;
};

struct table {
    std::size_t z;
    std::int64_t window_ns;
    std::uint64_t released = 0;
    std::unordered_map<std::uint64_t, attribute> attributes;

    bool observe(std::int64_t t_ns, std::uint64_t user, std::uint64_t name)
    {
        attribute &a = attributes[name];
        auto found = a.known.find(user);
        if (found == a.known.end()) {
            a.users.emplace_front(t_ns, user);
            a.known.emplace(user, a.users.begin());
        } else {
            found->second->first = t_ns;
            a.users.splice(a.users.begin(), a.users, found->second);
        }
        while (a.users.back().first < t_ns - window_ns) {
            a.known.erase(a.users.back().second);
            a.users.pop_back();
        }
        return a.users.size() >= z;
    }
};

double seconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

} // namespace

struct columns {
    const std::int64_t *t_ns;
    const std::uint64_t *user, *name;
};

extern "C" {

// As the C table's, but it knows neither a bound of users nor one of tuples.
table *list_open(std::uint32_t z, std::int64_t window_ns, std::uint32_t, std::uint32_t)
{
    return new table{z, window_ns, 0, {}};
}

void list_close(table *t)
{
    delete t;
}

// CPU seconds for n observations.
double list_run(table *t, const columns *in, std::size_t n)
{
    double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (std::size_t i = 0; i < n; i++)
        t->released += t->observe(in->t_ns[i], in->user[i], in->name[i]);
    return seconds(CLOCK_THREAD_CPUTIME_ID) - start;
}

// Wall time of each of n single calls in ns, the reading of the clock included.
void list_each(table *t, const columns *in, std::size_t n, std::uint32_t *ns)
{
    double before = seconds(CLOCK_MONOTONIC);
    for (std::size_t i = 0; i < n; i++) {
        t->released += t->observe(in->t_ns[i], in->user[i], in->name[i]);
        double after = seconds(CLOCK_MONOTONIC);
        ns[i] = static_cast<std::uint32_t>(1e9 * (after - before));
        before = after;
    }
}

std::uint64_t list_released(const table *t)
{
    return t->released;
}

// How many buckets H has for n attributes: multiples of that number all fall into one.
std::uint64_t list_buckets(std::uint64_t n)
{
    std::unordered_map<std::uint64_t, char> names;
    for (std::uint64_t i = 0; i < n; i++)
        names.emplace(i, 0);
    return names.bucket_count();
}
}
