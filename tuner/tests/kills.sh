#!/usr/bin/env bash
# Kills a tune on the cpu device at random moments, again and again, and checks the database after each: whole, nothing
# twice, nothing that was committed lost; and no worker outlives the program that started it.
# usage: kills.sh PROGRAM [KILLS]      (1000 take about ten minutes on an idle machine)
set -euo pipefail
kills=${2:-1000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$folder/rowtune  # a name of its own: other tests' workers are not what is looked for at the end
cp "$1" "$program"
cd "$folder"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
rows() { sqlite3 -readonly t.db "SELECT sweep_id, config, measured_at, outcome, time_us FROM measurement ORDER BY 1, 2"; }
say_and_fail() {
  printf 'kill %s: %s\n' "$kill" "$1" >&2
  cp t.db* /tmp/ 2>/dev/null || true
  exit 1
}

RANDOM=7
: >before
measured=0 files=1 finished=0
span=500  # milliseconds within which a kill comes: grows where a busy machine measures nothing in it
for ((kill = 1; kill <= kills; kill++)); do
  "$program" tune --device cpu --op softmax,rmsnorm --dtype f32 --shapes 4x64,8x64,4x128,8x128,4x256,8x256 \
    --regime warm --no-final --quiet --seed "$files" --db t.db >out 2>err &
  child=$!
  delay=$((RANDOM % span))
  sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
  if kill -KILL "$child" 2>/dev/null; then :; else finished=$((finished + 1)); fi
  status=0
  wait "$child" 2>/dev/null || status=$?
  if [ "$status" -ne 137 ] && [ "$status" -ne 0 ]; then say_and_fail "exit code $status: $(cat err)"; fi
  span=$((span < 8000 ? span * 5 / 4 : span))  # taken back below when something was measured
  [ -s t.db ] || continue
  # Readers of a database that was just killed recover it first, so the check is of what the next run will see.
  [ "$(sqlite3 t.db 'PRAGMA integrity_check')" = ok ] || say_and_fail "integrity"
  [ "$(sqlite3 t.db 'PRAGMA user_version')" -gt 0 ] || continue
  [ -z "$(sqlite3 t.db 'PRAGMA foreign_key_check')" ] || say_and_fail "foreign keys"
  [ -z "$(sqlite3 t.db 'SELECT 1 FROM measurement GROUP BY sweep_id, config HAVING count(*) > 1')" ] ||
    say_and_fail "a config is there twice"
  rows >now
  [ -z "$(comm -23 <(sort before) <(sort now))" ] || say_and_fail "a committed result is gone or has changed"
  if [ "$(wc -l <now)" -gt "$(wc -l <before)" ]; then span=$((span > 400 ? span * 2 / 3 : span)); fi
  mv now before
  if [ "$status" -eq 0 ]; then  # all of it is measured: another file
    measured=$((measured + $(wc -l <before)))
    rm -f t.db*
    : >before
    files=$((files + 1))
  fi
done
measured=$((measured + $(wc -l <before)))
sleep 1
if pgrep -f "^$program worker" >/dev/null; then
  printf 'workers are left behind: %s\n' "$(pgrep -fa "^$program worker")" >&2
  exit 1
fi
[ "$measured" -gt 0 ] || { echo "nothing was measured at all" >&2; exit 1; }
printf '%d kills, %d results over %d files: each whole, nothing twice, nothing lost; no worker left behind\n' \
  "$kills" "$measured" "$files"
