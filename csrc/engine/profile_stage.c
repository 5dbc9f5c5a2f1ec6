/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/profile_stage.h"

#define TEXT(name, text) [ZN_PROFILE_STAGE_##name] = text,

static const char *const names[] = {ZN_STAGES(TEXT)};

const char *zn_profile_stage_name(zn_profile_stage stage)
{
    return names[stage];
}
