#!/bin/sh
# Deletes the inference engine's binaries of every other platform from a node_modules folder (about 245 MB).
set -eu
binaries="$1/onnxruntime-node/bin/napi-v6"
wanted="$binaries/$(node -p 'process.platform + "/" + process.arch')"
[ -d "$wanted" ] || { echo "no binaries at $wanted" >&2; exit 1; }
for folder in "$binaries"/*/*; do
  [ "$folder" = "$wanted" ] || rm -rf "$folder"
done
find "$binaries" -mindepth 1 -maxdepth 1 -type d -empty -delete
