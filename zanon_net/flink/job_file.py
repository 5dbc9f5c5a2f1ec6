# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Script that `flink run -py` starts. Its only argument is the settings of a job."""

import sys

from zanon_net.flink.count_job import run_count_job
from zanon_net.flink.count_settings import CountSettings

if __name__ == "__main__":
    run_count_job(CountSettings.from_json(sys.argv[1]))
