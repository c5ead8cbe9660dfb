#!/bin/sh
# Runs PROGRAM, examples/minimal, on three ranks by each scheduler that is installed, in a network and with processes of its own, so that nothing
# of it is seen from outside and nothing outlives it. Prints a line for each; exit code 1 if one fails.
#   schedulers.sh PROGRAM
set -eu

if [ $# -eq 1 ]; then
  unshare --net --mount --pid --fork --kill-child --mount-proc true 2>/dev/null || { echo "skipped: no network namespaces on this system"; exit 0; }
  exec unshare --net --mount --pid --fork --kill-child --mount-proc sh "$0" "$1" inside
fi

program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ip link set lo up
failed=0

# The ranks of each run have the same sum, and rank 0 says who started them.
try() { # NAME COMMAND...
  name=$1
  shift
  code=0
  timeout 60 "$@" >"$folder/out" 2>"$folder/err" || code=$?
  sort "$folder/out" >"$folder/sorted"
  for rank in 0 1 2; do echo "rank $rank of 3: the sum of all ranks is 3"; done >"$folder/expected"
  if [ $code -eq 0 ] && cmp -s "$folder/sorted" "$folder/expected" && grep -q "^ringlet: rank 0 of 3, by $name " "$folder/err"; then
    echo "$name: as it should be: $*"
  else
    failed=1
    echo "$name: FAILED, exit code $code: $*"
    cat "$folder/out" "$folder/err"
  fi
}

is_here() { command -v "$1" >/dev/null || { echo "not installed: $2"; return 1; }; }

if is_here mpirun.openmpi "Open MPI"; then
  for _ in 1 2 3; do try "Open MPI" mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 "$program"; done
fi

if is_here mpiexec.hydra MPICH; then
  for _ in 1 2 3; do try MPICH mpiexec.hydra -n 3 "$program"; done
  # Two managers on this machine are to hydra as two machines.
  try MPICH mpiexec.hydra -launcher fork -hosts localhost:1,127.0.0.1:2 -n 3 "$program"
fi

if is_here slurmctld "Slurm's controller" && is_here slurmd "Slurm's daemon" && is_here srun "Slurm's commands" && is_here munged MUNGE; then
  # It does not take a machine that has no address but the loopback's.
  ip addr add 10.9.8.7/32 dev lo
  mkdir -p "$folder/state" "$folder/spool"
  host=$(hostname -s)
  (umask 077 && dd if=/dev/urandom of="$folder/key" bs=1024 count=1 2>/dev/null)
  munged --force --key-file="$folder/key" --socket="$folder/munge" --pid-file="$folder/munge.pid" --log-file="$folder/munge.log" --seed-file="$folder/seed"
  cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge
SlurmctldPort=27017
SlurmdPort=27018
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
CONF
  export SLURM_CONF="$folder/slurm.conf"
  slurmctld -f "$SLURM_CONF"
  slurmd -f "$SLURM_CONF"
  for _ in $(seq 40); do
    if timeout 5 sinfo --noheader --format %t 2>/dev/null | grep -q idle; then break; fi
    sleep 0.2
  done
  for _ in 1 2; do try Slurm srun -n 3 "$program"; done
  try Slurm srun --mpi=pmi2 -n 3 "$program"
  try MPICH srun -n 1 mpiexec.hydra -launcher fork -hosts localhost -n 3 "$program"
  [ $failed -eq 0 ] || cat "$folder"/*.log
fi
[ $failed -eq 0 ] && echo "all schedulers that are here start ranks that meet"
