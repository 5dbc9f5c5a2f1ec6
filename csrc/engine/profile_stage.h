/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage of an engine, for a sampler on another thread. The share of a stage in the samples is its
 * share of the time. Entering a stage costs one store, so the samples measure the real run.
 */
#ifndef ZN_ENGINE_PROFILE_STAGE_H
#define ZN_ENGINE_PROFILE_STAGE_H

#include <stdatomic.h>

/* X(NAME, "text"). Between two calls, while the caller takes the outputs, the stage is WRITE. */
#define ZN_STAGES(X)                                                                               \
    X(READ, "read")                                                                                \
    X(DECODE, "decode")                                                                            \
    X(FLOWS, "flows")                                                                              \
    X(NAMES, "names")                                                                              \
    X(CRYPTO, "crypto")                                                                            \
    X(Z, "z")                                                                                      \
    X(WRITE, "write")

typedef enum zn_profile_stage {
#define ZN_PROFILE_STAGE_ENUM(name, text) ZN_PROFILE_STAGE_##name,
    ZN_STAGES(ZN_PROFILE_STAGE_ENUM)
#undef ZN_PROFILE_STAGE_ENUM
        ZN_PROFILE_STAGE_COUNT
} zn_profile_stage;

typedef _Atomic unsigned char zn_profile_stage_mark;

/* Returns the stage's name for people. */
const char *zn_profile_stage_name(zn_profile_stage stage);

static inline void zn_profile_stage_enter(zn_profile_stage_mark *mark, zn_profile_stage stage)
{
    atomic_store_explicit(mark, (unsigned char)stage, memory_order_relaxed);
}

static inline zn_profile_stage zn_profile_stage_read(const zn_profile_stage_mark *mark)
{
    return (zn_profile_stage)atomic_load_explicit(mark, memory_order_relaxed);
}

#endif
