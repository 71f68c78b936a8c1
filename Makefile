# Short names for what people do. Meson builds; nothing here knows a source file.
BUILD ?= build
SAN    = $(BUILD)-san
TSAN   = $(BUILD)-tsan
FUZZ   = $(BUILD)-fuzz
MPICH  = $(BUILD)-mpich
ARM64  = $(BUILD)-arm64
VENV   = $(BUILD)-venv
DEB    = $(BUILD)-deb
AVX512 = $(BUILD)-avx512

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

demo: setup-demo all
	@tools/demo $(BUILD)

check: setup all
	@tools/check $(BUILD)

# The unit tests again, watched by AddressSanitizer and UndefinedBehaviorSanitizer, and by
# ThreadSanitizer. The latter needs clang: only its OpenMP runtime tells TSan about its barriers.
# No werror: the sanitizers' code makes gcc warn of faults that are not there.
check-san: setup
	@[ -f $(SAN)/build.ninja ] || meson setup $(SAN) --buildtype=debugoptimized \
	    -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=false
	@ninja -C $(SAN)
	@ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	    tools/check $(SAN) --suite unit

check-tsan: setup
	@[ -f $(TSAN)/build.ninja ] || meson setup $(TSAN) --native-file=tools/clang.ini --buildtype=debugoptimized \
	    -Db_sanitize=thread -Db_lundef=false -Dwerror=false
	@ninja -C $(TSAN)
	@TSAN_OPTIONS=ignore_noninstrumented_modules=1:allocator_may_return_null=1 \
	    tools/check $(TSAN) --suite unit

# The whole matrix of equal bits: ranks, threads, plans, algorithms, instruction sets, nets; and the
# recorded bits of the zoo (large nets on scalar kernels take minutes).
check-bits: setup all
	@tests/bits/recorded.py $(BUILD)/tutti --full
	@tests/bits/check.py $(BUILD)/tutti --full

# Ranks and equal bits with MPICH instead of Open MPI.
check-mpich: setup
	@tools/setup mpich
	@[ -f $(MPICH)/build.ninja ] || meson setup $(MPICH) -Dmpi=mpich
	@ninja -C $(MPICH)
	@tools/check $(MPICH) --suite mpi --suite bits

# A real Slurm of two nodes on this machine: a job stopped, requeued, resumed, to the same bytes.
check-slurm: all
	@tools/setup build slurm
	@tests/check_slurm.py $(BUILD)/tutti || [ $$? -eq 77 ]

# Random convolutions, and random nets for an hour, other ones each time; make check-random FOR=600
# SEED=7 (seconds; the first).
FOR ?= 3600
ifndef SEED
SEED := $(shell date +%s)
endif
check-random: setup all
	@$(BUILD)/tests/test_conv --slow --seed $(SEED)
	@OMP_WAIT_POLICY=passive $(BUILD)/tests/test_random --seed $(SEED) --seconds $$(($(FOR) / 2))
	@tests/bits/random_nets.py $(BUILD)/tutti $(BUILD)/tests/test_random --seed $(SEED) \
	    --seconds $$(($(FOR) / 2))

# What a run survives: kills, failing and full disks, two writers, damaged files, for ten minutes,
# other ones each time; make check-faults FAULTS="--seed 7 --seconds 60".
FAULTS ?= --seconds 600
check-faults: setup all
	@tests/faults/check.py $(BUILD)/tutti $(BUILD)/tests/faults/libfaults.so $(FAULTS)

# Every figure and picture of doc/SCALING.md, to the digit: most of an hour.
check-scaling: setup all
	@tests/sim/scaling.py $(BUILD)/tutti all

# The same nets, samples and steps in PyTorch (Debian's python3-torch, a large package), the same
# pixels in PIL; in an environment of their own the nets that bench/step races, and torchvision's without
# attention, brought over by tools/from-torch.
check-torch: all
	@tools/setup check torch
	@/usr/bin/python3 -W ignore tests/check_pil.py $(BUILD)/tests/test_pictures
	@/usr/bin/python3 tests/check_torch.py $(BUILD)/tutti
	@/usr/bin/python3 tests/check_torch_ways.py $(BUILD)/tutti
	@/usr/bin/python3 tests/check_torch_kinds.py $(BUILD)/tutti
	@/usr/bin/python3 tests/check_torch_losses.py $(BUILD)/tutti
	@tools/venv $(VENV)
	@$(VENV)/bin/python tests/check_data.py $(BUILD)/tests/varied
	@$(VENV)/bin/python tests/check_from_torch.py $(BUILD)/tests/net_outputs
	@$(VENV)/bin/python tests/check_opponents.py $(BUILD)/tutti
	@$(VENV)/bin/python tests/check_torchvision.py $(BUILD)/tutti $(BUILD)/tests/net_outputs

# The Python package as pip installs it, with mpi4py's communicators, and what --tensorboard writes read
# by TensorBoard's own reader, in an environment of its own.
check-python: all
	@tools/venv $(VENV)-python numpy mpi4py tensorboard matplotlib setuptools wheel
	@$(VENV)-python/bin/pip install --quiet --no-build-isolation --force-reinstall --no-deps ./python
	@$(VENV)-python/bin/python tests/check_tensorboard.py $(BUILD)/tutti
	@$(VENV)-python/bin/python tests/checks/python.py $(BUILD)/tutti $(BUILD)/src/libtutti.so installed mpirun

# The page in a real browser: Debian's chromium, without a screen. make check-page PICTURES=DIR keeps
# pictures to look at.
PICTURES ?=
check-page: all
	@tools/setup page
	@tests/page/check.py $(BUILD)/tutti $(if $(PICTURES),--pictures $(PICTURES))

# Models of ONNX, in an environment of their own: ONNX's node tests, and what PyTorch's exporters write of
# torchvision's nets, in, through a step of training, and out again. Half an hour.
check-onnx: all
	@tools/venv $(VENV)-onnx torch==2.13.0 numpy pillow onnx==1.19.1 onnxscript==0.7.2 onnxruntime==1.31.1
	@$(VENV)-onnx/bin/pip install --quiet --no-deps torchvision==0.28.0
	@$(VENV)-onnx/bin/python tests/onnx/nodes.py $(BUILD)/tutti $(BUILD)/tests/net_outputs
	@$(VENV)-onnx/bin/python tests/check_onnx.py $(BUILD)/tutti $(BUILD)/tests/net_outputs

# On arm64, by cross compiler and QEMU: the unit tests, and a training that must leave the same bytes
# as here. Takes a quarter of an hour.
check-arm64: setup all
	@tools/arm64-root $(ARM64)-root
	@[ -f $(ARM64)/build.ninja ] || meson setup $(ARM64) -Dmpi=none \
	    --cross-file $(ARM64)-root/cross.ini
	@ninja -C $(ARM64)
	@tests/check_arm64.py $(BUILD)/tutti $(ARM64)/tutti $(ARM64)-root
	@tools/check $(ARM64) --suite unit --timeout-multiplier 15

# The AVX-512 row on a processor that has only AVX2: its kernels against the reference, and the
# recorded bits of the zoo. Takes half an hour.
check-avx512: setup
	@tools/setup avx512
	@[ -f $(AVX512)/build.ninja ] || meson setup $(AVX512) -Demulate_avx512=true
	@ninja -C $(AVX512)
	@tools/check $(AVX512) --suite unit --timeout-multiplier 15
	@tests/bits/recorded.py $(AVX512)/tutti --filter avx512

# Every fuzzer for five minutes; make fuzz SECONDS=60 for one.
SECONDS ?= 300
fuzz: setup
	@[ -f $(FUZZ)/build.ninja ] || meson setup $(FUZZ) --native-file=tools/clang.ini --buildtype=debugoptimized \
	    -Dfuzz=true -Db_lundef=false -Dwerror=false
	@ninja -C $(FUZZ) fuzzers
	@meson test -C $(FUZZ) --no-rebuild --suite fuzz --test-args=-max_total_time=$(SECONDS)

# Every benchmark in turn, its table on the terminal.
bench: setup all
	@tools/bench $(BUILD)

# The planner's predictions against this machine.
bench-plan: all
	@tools/bench-plan $(BUILD)

# Simulated steps against measured ones, on this machine (as root also over namespaces).
bench-sim: setup all
	@tools/bench-sim $(BUILD)

fmt:
	@git ls-files '*.c' '*.h' | xargs -r clang-format -i

# The Debian packages, looked at by lintian, in $(DEB).
deb:
	@tools/setup build deb
	@tools/deb $(DEB)

install: all
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf $(BUILD) $(SAN) $(TSAN) $(FUZZ) $(MPICH) $(AVX512) $(ARM64) $(ARM64)-root $(DEB) $(VENV) $(VENV)-onnx $(VENV)-python

setup:
	@tools/setup

setup-demo:
	@tools/setup build demo

$(BUILD)/build.ninja:
	@tools/setup build
	@meson setup $(BUILD)

.PHONY: all demo deb check check-arm64 check-avx512 check-bits check-faults check-mpich check-onnx check-page check-python check-random check-san check-scaling check-slurm check-torch check-tsan fuzz bench bench-plan bench-sim fmt install clean setup setup-demo
