#!/usr/bin/env bash
# Release a version and wait for the end of it: release.sh ROLLOUT LWS-MANIFEST RELEASE-ID
# TIMEOUT bounds the wait (6h). What goes wrong is aborted, so that stable serves alone again and nothing is held.
set -euo pipefail
rollout=$1 manifest=$2 release=$3

kubectl label --local --overwrite -f "$manifest" "rollouts.kruise.io/rollout-id=$release" -o yaml | kubectl apply -f -

code=0
rollout-lws status "$rollout" --release-id "$release" --timeout "${TIMEOUT:-6h}" || code=$?
case $code in
  3 | 4) rollout-lws abort "$rollout" --release-id "$release" --reason "release.sh ended with $code" || true ;;
  5) echo "approve it: rollout-lws promote $rollout --release-id $release; then run this again" ;;
esac
exit "$code"
