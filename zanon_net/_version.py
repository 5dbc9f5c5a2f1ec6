# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The version, in this place only; setuptools and `zanon_net` both read it from here.

To release: write the version's date in CHANGELOG.md, change the number here, run `bash .ci/run`,
commit, tag `v<version>`, build with `make dist` (with ZANON_HOME, the project's address, in the
environment) and publish the content of `build/dist`.
"""

__version__ = "0.1.0"
