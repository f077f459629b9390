#!/usr/bin/env bash
# Run in the root of a copy of the project, on the GPU machine: device.sh full | short | benchmarks | STAGE...
# Each stage is a process with a limit; $OUT gets results.jsonl (a line a stage), log.txt and table.txt.
# KIT_CPU=1 tries it on a CPU, with tiny transformers and few steps. KIT_SECONDS: all stages end by then.
set -u
start=$(date +%s.%N)
root=$(pwd)
export OUT=${OUT:-$root/.out} KIT=${KIT:-$root/.whl} KIT_WORK=${KIT_WORK:-/tmp/gpukit-work} KIT_CPU=${KIT_CPU:-} KIT_START=$start
mkdir -p "$OUT" "$KIT_WORK"
site=${KIT_SITE:-/tmp/site}
python=${KIT_PYTHON:-python3}
if [ ! -d "$site/spacy" ]; then  # Python reads xz, where there may be no xz; 5 s
    mkdir -p "$site" && "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="tar")' "$KIT/site.tar.xz" "$site" || { echo "no packages" | tee "$OUT/log.txt"; exit 1; }
fi
export PYTHONPATH="$site:$root" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
# JAX would take three quarters of the GPU's memory; transformers would import TensorFlow.
export USE_TF=0 USE_FLAX=0 USE_JAX=0 JAX_PLATFORMS=cpu XLA_PYTHON_CLIENT_PREALLOCATE=false OPENBLAS_NUM_THREADS=1
total=560
[ "${1:-full}" = short ] && total=270
[ "${1:-full}" = benchmarks ] && total=320
total=${KIT_SECONDS:-$total}

# NAME:SECONDS, the most valuable first. Stages joined by + run side by side: they aren't timed.
full="check:60 warm:70 train-roberta-bf16:110 peer-roberta:90 profile:75 train-minilm-bf16:80 halve+resume:100 overflow:45 evaluate:50 steady:60 floor:25 train-roberta-fp16:60 train-roberta-bf16-t1:60 pytest:100 train-roberta-fp32:60 peer-minilm:60"
short="check:60 warm:70 train-roberta-bf16:80 profile:60 train-roberta-bf16-t1:60"
case "${1:-full}" in full) stages=$full ;; short) stages=$short ;; benchmarks) stages="benchmarks:310" ;; *) stages="$*" ;; esac

left() { "$python" -c "import time; print(max(0, int($total - (time.time() - $start))))"; }
one() {  # NAME SECONDS
    local before log="$KIT_WORK/$1.log" rc
    before=$(date +%s.%N)
    KIT_UNTIL=$("$python" -c "print($before + $2)") timeout -k 3 "$2" "$python" -m benchmarks.gpu_kit.stages "$1" >"$log" 2>&1
    rc=$?
    "$python" -m benchmarks.gpu_kit.row "$1" "$rc" "$before" "$log"
}
for stage in $stages; do
    names=${stage%:*} limit=${stage##*:}
    [ "$names" = "$limit" ] && limit=120
    rest=$(left)
    [ "$limit" -gt "$rest" ] && limit=$rest
    if [ "$limit" -lt 15 ]; then echo "$names: no time left" | tee -a "$OUT/table.txt"; continue; fi
    for name in ${names//+/ }; do one "$name" "$limit" & done
    wait
done
echo "all: $("$python" -c "import time; print(round(time.time() - $start))") s"
