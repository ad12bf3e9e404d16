#!/usr/bin/env bash
# Tunes through a Slurm of one node that this script starts and stops: two workers by `srun`, a shared queue, one of
# them killed in mid-run. Exit 77: skipped, and it says why.
# usage: slurm.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
skip() { echo "skipped: $1"; exit 77; }
for tool in slurmctld slurmd munged srun scontrol; do
  [ -n "$(PATH=$PATH:/usr/sbin command -v "$tool")" ] || skip "$tool is not installed (Debian: slurmd slurmctld slurm-client munge)"
done
[ "$(id -u)" -eq 0 ] || skip "slurmd wants to run as root"
PATH=$PATH:/usr/sbin
folder=$(mktemp -d)
chmod 755 "$folder"
mkdir -p "$folder"/{state,spool,log,munge}
chmod 700 "$folder/munge"
started=()
stop() {
  for pid in ${started[@]+"${started[@]}"}; do kill "$pid" 2>/dev/null || true; done
  sleep 1
  for pid in ${started[@]+"${started[@]}"}; do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap stop EXIT

dd if=/dev/urandom of="$folder/munge/key" bs=1 count=1024 status=none
chmod 600 "$folder/munge/key"
munged --foreground --force --socket="$folder/munge/socket" --key-file="$folder/munge/key" --pid-file="$folder/munge/pid" \
  --seed-file="$folder/munge/seed" --log-file="$folder/munge/log" >/dev/null 2>&1 &
started+=($!)
host=$(hostname -s)
cat >"$folder/slurm.conf" <<CONF
ClusterName=rowtune
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
export SLURM_CONF="$folder/slurm.conf"
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
started+=($!)
slurmd -D -N "$host" -f "$SLURM_CONF" >/dev/null 2>&1 &
started+=($!)
ready=
for _ in $(seq 1 60); do
  if timeout 10 srun --immediate=5 -n1 true 2>/dev/null; then ready=yes; break; fi
  sleep 1
done
if [ -z "$ready" ]; then
  tail -n 5 "$folder"/log/* "$folder/munge/log" >&2 || true
  skip "Slurm does not start on this machine"
fi

cd "$folder"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
tune=("$program" tune --device cpu --op softmax --dtype f32 --shapes 4x64,8x64,4x128,8x128 --regime warm --no-final
  --launcher "srun --ntasks=1 --overcommit --overlap --quiet" --workers 2)
"${tune[@]}" --db t.db >out 2>err || { cat err >&2; exit 1; }
grep -q 'on 2 devices' err || { echo "not two workers:" >&2; cat err >&2; exit 1; }
workloads=$(sqlite3 t.db "SELECT count(*) FROM best WHERE op = 'softmax'")
[ "$workloads" -eq 4 ] || { echo "$workloads workloads instead of 4" >&2; exit 1; }

# A fault behind the launcher costs one config there too.
base=$(sqlite3 t.db "SELECT base_config FROM best WHERE op = 'softmax' LIMIT 1")
victim=$(sqlite3 t.db "SELECT config FROM leaderboard WHERE op = 'softmax' AND config <> '$base' ORDER BY config LIMIT 1")
ROWTUNE_FAULTS="crash:$victim" "${tune[@]}" --db f.db >out 2>err || { cat err >&2; exit 1; }
bad=$(sqlite3 f.db "SELECT count(*) FROM failures WHERE op = 'softmax' AND status = 'crash'")
good=$(sqlite3 f.db "SELECT count(*) FROM leaderboard WHERE op = 'softmax' AND status = 'ok'")
all=$(sqlite3 t.db "SELECT count(*) FROM leaderboard WHERE op = 'softmax'")
[ "$bad" -ge 1 ] && [ "$((bad + good))" -eq "$all" ] || { echo "$bad crashes, $good right, of $all" >&2; exit 1; }
[ -z "$(squeue --noheader)" ] || { echo "jobs are left behind: $(squeue)" >&2; exit 1; }
echo "two workers by srun tuned $workloads workloads; $bad crashes behind it cost a row each, $good others are right"
