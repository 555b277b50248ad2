#: run
set -euo pipefail
# The cap counts from the first start, through all restarts.
mkdir -p "$CHECKPOINT_DIR"
began="$CHECKPOINT_DIR/began" paid="$CHECKPOINT_DIR/@PAID@"
[ -s "$began" ] || date +%s > "$began"
left=$(( $(cat "$began") + LONGEST_RUN_S - $(date +%s) ))
@BUDGET@
left=$(( left - ${UPLOAD_S:-0} ))  # for the upload of the last checkpoint
if [ "$left" -le 0 ]; then
  echo "stopped for good by a cap; to start over remove $began and $paid" >&2
  exit @CAPPED@
fi
# Resume from the newest checkpoint that is complete; at the first start there is none.
newest=$(
  @NEWEST@
)
if [ "@RANK@" = 0 ]; then
## A price has to be written in one piece: a machine may go at any moment.
  (
    while sleep 60 > /dev/null 2>&1; do
      echo "$USD_PER_HOUR" >> "$paid" || echo "$paid was not written" >&2
      late=$(( $(date +%s) - $(cat "$began") - WARN_AFTER_S ))
      if [ "$late" -ge 0 ] && [ "$late" -lt 60 ]; then
        echo "warning: 99 runs in 100 were expected to be done by now" >&2
      fi
    done
  ) &
  counting=$!
  trap 'kill "$counting" 2> /dev/null || true' EXIT
fi
for name in @SECRETS@; do
  if [ -z "${!name:-}" ]; then unset "$name"; fi  # not given
done
# recommender.train, where it lies beside these files.
helper=$(find "$PWD" -maxdepth 2 -name @HELPER@ | head -n 1)
export PYTHONPATH="$helper${PYTHONPATH:+:$PYTHONPATH}"
@LAUNCH@
#: budget
touch "$paid"
left=$(awk -v left="$left" -v most="$BUDGET_USD" -v price="$USD_PER_HOUR" \
  '{ most -= $1 / 60 }
  END { paid = most / price * 3600; printf "%d", (paid < left ? paid : left) }' "$paid")
#: repeated
cat > @TRAINING@ <<'EOF'
@RUN@
EOF
# A crash of the script is tried again, as often as three times.
for _ in 1 2 3 4; do
  code=0
  bash @TRAINING@ || code=$?
  @ENDED@
  if [ "$code" -eq 0 ] || [ "$code" -eq @CAPPED@ ]; then break; fi
  sleep 60
  @AGAIN@
done
#: ended_if_asked
if [ -e @FILE@ ]; then code=@CAPPED@; fi
#: install
# Your packages, torch among them: of conda, then of pip.
if [ -f environment.yml ]; then conda env update --name base --file environment.yml; fi
if [ -f requirements.txt ]; then pip install -r requirements.txt; fi
