"""A gate that asks a Job, and the CronJob that the Job is made from."""

from __future__ import annotations

from rollout_lws.objects.resources import CRON_JOBS
from rollout_lws.sandbox.behaviours.base import Object
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.names import NAMESPACE

EVALS = {"name": "evals", "job": {"fromCronJob": "evals"}, "deadlineSeconds": 300}


def cron_job(**ends: str) -> Object:
    """A suspended CronJob whose Jobs run for a minute; annotations say how their one pod ends."""
    annotations = {PREFIX + name.replace("_", "-"): text for name, text in {"ends_after": "60s", **ends}.items()}
    container = {"name": "evals", "image": "evals:v1", "env": [{"name": "ROLLOUT_STEP", "value": "mine"}]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = {
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": 60,
        "template": {"metadata": {"annotations": annotations}, "spec": pod},
    }
    template = {"metadata": {"labels": {"team": "evals"}}, "spec": job}
    return CRON_JOBS.manifest(
        "evals", NAMESPACE, spec={"schedule": "@yearly", "suspend": True, "jobTemplate": template}
    )
