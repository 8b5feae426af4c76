#!/bin/sh
# Publish one day: ./publish.sh 2027-01-31, or yesterday (UTC). A second run of a day returns the first
# one's result and charges nothing. The exit code is that of dpframe: 3, 4, 5 and 9 need a person, 6
# may pass by itself, 7 says that the same day is being published elsewhere.
set -eu

day="${1:-$(date --utc --date yesterday +%F)}"
exec dpframe run "${DPFRAME_JOB_FILE:-/job/nightly.toml}" \
    --param "day=$day" \
    --run-id "$day" \
    --output "${DPFRAME_RESULTS:-/results}/visits-$day.parquet" \
    --log json
