"""crds: the CustomResourceDefinitions as YAML, for `kubectl apply -f -`."""

from __future__ import annotations

import click
import yaml

from rollout_lws.api import crd
from rollout_lws.cli.options import with_target
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.settings import Settings


@click.command()
@with_target
def crds(target: Target) -> None:
    """Print the CustomResourceDefinitions of Rollout and BatchRelease, in the group that --api-group names."""
    settings = Settings(api_group=target.api_group or DEFAULT_API_GROUP)
    click.echo(yaml.safe_dump_all(crd.render(settings.api_group), sort_keys=False), nl=False)
