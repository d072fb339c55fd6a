# SPDX-License-Identifier: Apache-2.0
"""Slurm's four programs, as far as a sweep calls them: what is submitted is run at once, on one node."""

from pathlib import Path

SINFO = """#!/bin/sh
[ ! -e "$SLURM_HOME/empty" ] || exit 0
[ ! -e "$SLURM_HOME/down" ] || { echo "slurm_load_partitions: Unable to contact slurm controller" >&2; exit 1; }
printf 'main\\nspare\\n'
"""
SQUEUE = """#!/bin/sh
[ ! -e "$SLURM_HOME/away" ] || { echo "squeue: error: Unable to contact slurm controller" >&2; exit 1; }
cat "$SLURM_HOME/queue" 2>/dev/null || true
"""
SCANCEL = """#!/bin/sh
echo "$*" >> "$SLURM_HOME/cancelled"
if [ -e "$SLURM_HOME/stuck" ]; then echo "COMPLETING None" > "$SLURM_HOME/queue"; else rm -f "$SLURM_HOME/queue"; fi
"""
SBATCH = """#!/bin/sh
[ ! -e "$SLURM_HOME/sinks" ] || {
  touch "$SLURM_HOME/away"
  echo "sbatch: error: Batch job submission failed: Unable to contact slurm controller" >&2
  exit 1
}
id=$(($(ls "$SLURM_HOME" | grep -c "^job") + 1))
for word; do
  case $word in
    --array=0-*) last=${word#--array=0-} ;;
    --output=*) folder=$(dirname "${word#--output=}") ;;
  esac
done
echo "$*" > "$SLURM_HOME/words$id"
cat > "$SLURM_HOME/job$id"
[ ! -e "$SLURM_HOME/held" ] || echo "PENDING Resources" > "$SLURM_HOME/queue"
for task in $(seq 0 "$last"); do
  [ -e "$SLURM_HOME/blind" ] || [ -e "$SLURM_HOME/held" ] || SLURMD_NODENAME=n1 SLURM_ARRAY_TASK_ID=$task \\
    sh "$SLURM_HOME/job$id" > "$folder/n1.${id}_$task.log" 2>&1
done
echo "$id"
"""


def install(folder: Path) -> None:
    """Put them into `folder`, which is to be on PATH, and SLURM_HOME."""
    for name, text in {"sinfo": SINFO, "squeue": SQUEUE, "scancel": SCANCEL, "sbatch": SBATCH}.items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
