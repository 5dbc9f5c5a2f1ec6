# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What `flink run -py` starts: the settings of a job are its only argument."""

import sys

from zanon_net.flink.count_job import run_count_job
from zanon_net.flink.count_settings import CountSettings

if __name__ == "__main__":
    run_count_job(CountSettings.from_json(sys.argv[1]))
